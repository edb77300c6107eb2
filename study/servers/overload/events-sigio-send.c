/* SPDX-License-Identifier: MIT */
/*
 * events-sigio.c with POSIX' real-time signals on SEND (SEND, section 5.2): its
 * functions have other names, and all else is as it was.
 */
#define _GNU_SOURCE
#include "study/rtsignal/rtsignal.h"

#define sigprocmask	rtsig_procmask
#define sigtimedwait	rtsig_timedwait
#define sigwaitinfo	rtsig_waitinfo

#define MODEL	model_sigio_send
#define NAME	"sigio-send"
#define BY	send_by

#include "events-sigio.c"
