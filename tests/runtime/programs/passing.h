/* SPDX-License-Identifier: MIT */
/*
 * A library that defines every function that the runtime stands in front of. Each
 * passes on to the next definition, unless it is told to answer itself.
 */
#ifndef FLEXSC_TESTS_PASSING_H
#define FLEXSC_TESTS_PASSING_H

#define PASSING_ANSWER	0x4242

/* The assembler in passing.c knows where each field is. */
struct passing {
	void *next;
	long answers;	/* PASSING_ANSWER */
	const char *name;
};

/* Found by dlsym(), because the library is preloaded. NULL: no such function. */
struct passing *passing_find(const char *name);

#endif /* FLEXSC_TESTS_PASSING_H */
