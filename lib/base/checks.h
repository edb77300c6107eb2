/* SPDX-License-Identifier: MIT */
/*
 * Rules that builds with -Dchecks verify (debug builds do by default). A broken rule
 * prints its condition and location, and ends the process. Any thread, any signal
 * handler.
 */
#ifndef FLEXSC_CHECKS_H
#define FLEXSC_CHECKS_H

#ifdef FLEXSC_CHECKS

void flexsc__rule_broken(const char *rule, const char *file, int line)
	__attribute__((noreturn));

#define RULE(condition) \
	((condition) ? (void)0 : \
		       flexsc__rule_broken(#condition, __FILE__, __LINE__))

#else

#define RULE(condition)	((void)sizeof(condition))

#endif

#endif /* FLEXSC_CHECKS_H */
