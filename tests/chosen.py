# SPDX-License-Identifier: MIT
"""Of tests that take long, those that run.py runs."""

# Of others' tests those that are quick, and of everything some. sem_post/8-1 lets
# two processes race, and expects that the one of higher priority wins.
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

# Of each assertion one test. Those with a known failure wait until they are ended.
SIGNALS = (
    "signals/sig(queue|wait/[1-357]|waitinfo|timedwait|suspend/4|pending|procmask)",
    "signals/sigaction/([1-8]|1[1-37-9]|2[0-9]|30)-1$",
)

# Those that need no clock: a guest's runs unevenly.
GUEST = (
    "kmod-attack",
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
    "kmod-rights",
    "kmod-rounds",
    "kmod-send",
    "kmod-serve",
    "kmod-upcall",
    "kmod-watchdog",
    "kmod-watched",
    "conformance-cancel_each",
    "conformance-chain",
    "conformance-closing",
    "conformance-multishot",
    "conformance-posting",
    "conformance-results_file",
    "conformance-results_other",
    "conformance-results_socket",
    "conformance-stats",
    "conformance-table",
    "pairs",
    "send-accept",
    "send-cost",
    "send-delivery",
    "send-many",
    "send-notify",
    "send-signal",
)
# What hardly depends on the kernel takes its time on one: a further kernel costs
# four guests.
ONCE = (
    "kmod-(cancelling|cores|fuzz|handled|leaving|rounds|send|serve|upcall|watchdog|watched)"
    "|conformance-(cancel_each|chain|closing|multishot|posting|results_socket|stats|table)"
    "|pairs|send-(accept|delivery|many|signal)"
)
CROSS_GUEST = (
    "kmod-filtered",
    "kmod-interface",
    "kmod-owner",
    "conformance-results_other",
)
