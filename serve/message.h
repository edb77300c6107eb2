/* SPDX-License-Identifier: MIT */
/*
 * Answers that are a status and a sentence.
 */
#ifndef SERVE_MESSAGE_H
#define SERVE_MESSAGE_H

struct exchange;
struct response_detail;

void message_send(struct exchange *x, int status);
void message_send_with(struct exchange *x, int status,
		       const struct response_detail *detail);

/* Send 503, without a buffer. */
void message_send_busy(struct exchange *x);

/*
 * Send the status that says that a call on a file has failed with this errno.
 */
void message_send_error(struct exchange *x, int error);

/* Send 301, to this path with a slash. */
void message_redirect(struct exchange *x);

#endif /* SERVE_MESSAGE_H */
