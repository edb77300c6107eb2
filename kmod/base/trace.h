/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tracepoints: before the call of an entry is made, and after its result is
 * stored.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM flexsc

#if !defined(FLEXSC_KMOD_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define FLEXSC_KMOD_TRACE_H

#include <linux/tracepoint.h>

#include "base/registration.h"

TRACE_EVENT(flexsc_submit,
	    TP_PROTO(const struct registration *reg, u32 index, unsigned int nr),
	    TP_ARGS(reg, index, nr),
	    TP_STRUCT__entry(
		__field(u32, registration)
		__field(u32, index)
		__field(unsigned int, nr)
	),
	TP_fast_assign(
		__entry->registration = reg->id;
		__entry->index = index;
		__entry->nr = nr;
	),
	TP_printk("registration=%u index=%u nr=%u", __entry->registration,
		  __entry->index, __entry->nr)
);

TRACE_EVENT(flexsc_complete,
	    TP_PROTO(const struct registration *reg, u32 index, long ret),
	    TP_ARGS(reg, index, ret),
	    TP_STRUCT__entry(
		__field(u32, registration)
		__field(u32, index)
		__field(long, ret)
	),
	TP_fast_assign(
		__entry->registration = reg->id;
		__entry->index = index;
		__entry->ret = ret;
	),
	TP_printk("registration=%u index=%u ret=%ld", __entry->registration,
		  __entry->index, __entry->ret)
);

#endif /* FLEXSC_KMOD_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH base
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
