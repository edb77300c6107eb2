/* SPDX-License-Identifier: MIT */
/*
 * Registers in a signal's frame. Called in signal handlers.
 *
 *	frame_sp()		the interrupted stack pointer
 *	frame_result()		the result, if a system call was interrupted or has ended
 *	frame_set_result()
 *	frame_is_in()		is it the call with this stack pointer, address of the
 *				next instruction, and these arguments?
 *	frame_call()		the number and first argument of the interrupted call, if
 *				the code before it shows them; else false
 *	frame_make_again()	make the call with this number and first argument again
 *	frame_trap(), frame_set_trap()	the number of the fault, where there is one
 *	frame_is_past()		has the faulting instruction of this signal ended? If not,
 *				it faults again after the handler
 */
#ifndef FLEXSC_RUNTIME_FRAME_H
#define FLEXSC_RUNTIME_FRAME_H

#if defined(__x86_64__)
#include "x86_64/frame.h"
#elif defined(__aarch64__)
#include "aarch64/frame.h"
#endif

#endif /* FLEXSC_RUNTIME_FRAME_H */
