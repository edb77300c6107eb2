/* SPDX-License-Identifier: MIT */
/*
 * A library that defines every function that the runtime interposes. Each of them
 * passes its call on to the next definition, or answers itself if "answers" is set.
 */
#ifndef FLEXSC_TESTS_PASSING_H
#define FLEXSC_TESTS_PASSING_H

#define PASSING_ANSWER	0x4242

/* The assembler code in passing.c depends on the offsets. */
struct passing {
	void *next;
	long answers;	/* return PASSING_ANSWER */
	const char *name;
};

/* Looked up with dlsym(), because the library is preloaded. NULL: no such function. */
struct passing *passing_find(const char *name);

#endif /* FLEXSC_TESTS_PASSING_H */
