/* SPDX-License-Identifier: MIT */
/* Counters of /proc/PID/net/netstat: of the network that a process is in. */
#ifndef FLEXSC_STUDY_NETSTAT_H
#define FLEXSC_STUDY_NETSTAT_H

/* pid 0: this process. A counter that can't be read is 0. */
double bench_netstat(long pid, const char *name);

#endif /* FLEXSC_STUDY_NETSTAT_H */
