# SPDX-License-Identifier: MIT
"""flexstudy: the benches of the papers' figures, and the page that shows both.

cost, memory, send, nginx, programs, counts, counters, overload
            the benches: measuring, and their tables
webserver   the bench of one web server with several drivers, a package
under_load  observing a server under load
entries, loops
            parts of programs: Apache by entries, programs with an event loop
looping, questions
            the programs with an event loop, and their requests
threaded    the programs whose threads serve, and their variants
overload_plan, overload_table, mix
            parts of overload; mix: the sizes of files
apache, mariadb, pools
            the programs that programs measures
raw         the measuring loops of flexsc study --raw
papers      the papers' numbers, from the folder of that name
report      flexsc study report: the papers' figures beside ours, a package
"""
