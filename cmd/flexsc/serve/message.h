/* SPDX-License-Identifier: MIT */
/*
 * Answers that are a status and a sentence.
 */
#ifndef SERVE_MESSAGE_H
#define SERVE_MESSAGE_H

struct connection;
struct response_detail;

void message_send(struct connection *c, int status);
void message_send_with(struct connection *c, int status,
		       const struct response_detail *detail);

/* 503, without a buffer. */
void message_send_busy(struct connection *c);

/* What tells the client that a call on a file has failed with this errno. */
void message_send_error(struct connection *c, int error);

/* 301, to the same path with a slash. */
void message_redirect(struct connection *c);

#endif /* SERVE_MESSAGE_H */
