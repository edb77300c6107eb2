/* SPDX-License-Identifier: MIT */
/*
 * What a request is answered with: the way from its path to what is sent.
 */
#ifndef SERVE_ANSWER_H
#define SERVE_ANSWER_H

#include <stdbool.h>

struct exchange;

/* Once, before the first; what is given to an exchange is there. */
void answer_init(struct exchange *x);

/*
 * Answer the request, whose head begins at head, or refuse it with its status.
 * False: that has failed already, and done() won't be called.
 */
bool answer_request(struct exchange *x, const char *head, bool keep_alive);

/* Answer status at once, and nothing after it. False: the same. */
bool answer_refuse(struct exchange *x, const char *head, int status);

#endif /* SERVE_ANSWER_H */
