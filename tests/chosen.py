# SPDX-License-Identifier: MIT
"""The selection of tests that take long: those that run.py runs with --all, and
without.
"""

# pytest files that only --all runs, in addition to the tests that are marked "long".
# They are further programs under flexsc run, which find little that Apache and Python
# don't find; and the study's tests, except its units.
LONG_FILES = (
    "test_run_mariadb",
    "test_run_systemd",
    "test_bench",
    "test_flexbench_overload",
    "test_flexbench_report",
    "test_load",
    "test_overload",
    "test_report",
    "test_study_cores",
    "test_study_workload",
    "test_webserver",
    "test_webserver_work",
)

# Quick tests of other projects, some from each area. sem_post/8-1 lets two processes
# race, and expects that the one with the higher priority wins.
PEERS = (
    "posix/pthread_create/(1-[1-4]|3|[5-9]|11)",
    "posix/pthread_(join/[1-5]|detach/[1-3]|cancel/[1345]|barrier_wait/[12])",
    "posix/pthread_cond_(wait|timedwait|signal/[12]-1)",
    "posix/pthread_(exit|mutex_|key_|once|sigmask|kill/[2-8]|testcancel)",
    "posix/sem_(wait|post/[1-6]|timedwait|open|init)",
    "posix/sig(queue|wait|timedwait|suspend|altstack|hold|relse|pause/1-1)",
    "posix/(fork/[1-9]-|nanosleep/[12]-|clock_nanosleep)",
    "posix/(mq_receive|mq_timedreceive|aio_read|aio_write|aio_suspend)",
    "libuv/(async|barrier_[123]|condvar|mutex|rwlock|semaphore|threadpool)",
    "libuv/thread_(create|mut|rw|local|equal|stack)",
    "libuv/(fork|signal|spawn_(exit|std|and|detach|preserve)|poll|pipe|timer)",
    "libuv/(tcp_(ping|open|conn|oob|shut)|udp_(send|open|conn)|getaddrinfo)",
)

# Without --all.
FEW_PEERS = (
    "posix/pthread_(create/(1-[1-4]|3)|join/[12]|detach/1|cancel/[13]|barrier_wait/1)",
    "posix/pthread_(cond_(wait|signal/[12]-1)|mutex_lock|key_create|once|sigmask)",
    "posix/(sem_(wait|timedwait)|sigwait|sigsuspend|fork/[1-4]-|nanosleep/1)",
)

# Programs that need no accurate clock: a guest's clock runs unevenly.
GUEST = (
    "kmod-attack",
    "kmod-calls",
    "kmod-cancelling",
    "kmod-choice",
    "kmod-cores",
    "kmod-dying",
    "kmod-filtered",
    "kmod-fuzz",
    "kmod-handled",
    "kmod-interface",
    "kmod-leaving",
    "kmod-owner",
    "kmod-policy",
    "kmod-rights",
    "kmod-rounds",
    "kmod-run",
    "kmod-sharing",
    "kmod-events",
    "kmod-serve",
    "kmod-upcall",
    "kmod-watchdog",
    "kmod-watched",
    "conformance-cancel",
    "conformance-chain",
    "conformance-closing",
    "conformance-failing",
    "conformance-handover",
    "conformance-looped",
    "conformance-looped_cancel",
    "conformance-multishot",
    "conformance-opened",
    "conformance-posting",
    "conformance-refused",
    "conformance-results_file",
    "conformance-results_other",
    "conformance-results_socket",
    "conformance-shutdown",
    "conformance-stats",
    "conformance-table",
    "pairs",
    "events-accept",
    "events-cost",
    "events-delivery",
    "events-many",
    "events-notify",
    "events-stack",
    "threads-affinity",
    "threads-allocator",
    "threads-apart",
    "threads-attributes",
    "threads-births",
    "threads-calls",
    "threads-cancel",
    "threads-cxx",
    "threads-ended",
    "threads-faults",
    "threads-forks",
    "threads-futex",
    "threads-handlers",
    "threads-handover",
    "threads-held",
    "threads-identity",
    "threads-idle",
    "threads-jumps",
    "threads-kept",
    "threads-kinds",
    "threads-large",
    "threads-last",
    "threads-life",
    "threads-limits",
    "threads-locks",
    "threads-loops",
    "threads-masks",
    "threads-mtx",
    "threads-preloads",
    "threads-priorities",
    "threads-process",
    "threads-rest",
    "threads-rseq",
    "threads-sandbox",
    "threads-shadow",
    "threads-shared",
    "threads-signalfd",
    "threads-signals",
    "threads-sigpipe",
    "threads-sites",
    "threads-strict",
    "threads-stuck",
    "threads-times",
    "threads-torture",
    "threads-tracing",
)
# Without --all: permissions, the ends of threads and processes, and calls of each kind,
# on one kernel.
FEW_GUEST = (
    "kmod-dying",
    "kmod-filtered",
    "kmod-fuzz",
    "kmod-interface",
    "kmod-leaving",
    "kmod-owner",
    "kmod-rights",
    "kmod-run",
    "kmod-sharing",
    "kmod-events",
    "kmod-serve",
    "kmod-upcall",
    "conformance-chain",
    "conformance-multishot",
    "conformance-posting",
    "conformance-results_file",
    "conformance-results_other",
    "conformance-results_socket",
    "events-delivery",
    "events-notify",
    "events-stack",
    "threads-masks",
)
# Programs that hardly depend on the kernel, so one kernel suffices: each further kernel
# would cost four guests.
ONCE = (
    "kmod-(calls|cancelling|cores|fuzz|handled|leaving|policy|rounds|sharing|events|serve|upcall|watchdog|watched)"
    "|conformance-(cancel|chain|closing|failing|handover|looped|looped_cancel|multishot|opened|posting|refused|results_socket|stats|table)"
    "|pairs|events-(accept|delivery|many)"
    "|threads-(affinity|allocator|apart|attributes|births|calls|cancel|cxx|ended|faults|futex|idle|kinds|large|last|limits)"
    "|threads-(locks|loops|mtx|priorities|rest|rseq|shadow|shared|signalfd|sites|times|tracing)"
)
CROSS_GUEST = (
    "kmod-filtered",
    "kmod-interface",
    "kmod-owner",
    "conformance-results_other",
)
