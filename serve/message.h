/* SPDX-License-Identifier: MIT */
/* Answers that consist of a status and a sentence. */
#ifndef SERVE_MESSAGE_H
#define SERVE_MESSAGE_H

struct exchange;
struct response_detail;

void message_send(struct exchange *x, int status);
void message_send_with(struct exchange *x, int status,
		       const struct response_detail *detail);

/* Send 503 when there is no memory for a buffer. */
void message_send_busy(struct exchange *x);

/* Send the status for a file's call that failed with this errno. */
void message_send_error(struct exchange *x, int error);

/* Redirect by 301 to the request's path with a slash at its end. */
void message_redirect(struct exchange *x);

#endif /* SERVE_MESSAGE_H */
