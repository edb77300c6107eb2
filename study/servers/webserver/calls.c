/* SPDX-License-Identifier: MIT */
/*
 * The call for each state of a connection (web.c has the states), and the
 * call's time limit.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "web.h"

#define PTR(p)	((uint64_t)(uintptr_t)(p))

enum web_kind web_kind_of(const struct web_connection *c)
{
	switch (c->state) {
	case WEB_READING:
	case WEB_LINGERING:
		return WEB_RECEIVE;
	case WEB_SENDING:
	case WEB_PASSING:
		return WEB_SEND;
	case WEB_OPENING:
	case WEB_LOOKING:
	case WEB_LOADING:
		return WEB_FILE;
	default:
		return WEB_CLOSE;
	}
}

static void set(struct web_call *call, unsigned int nr, uint64_t a0,
		uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4)
{
	call->nr = nr;
	call->args[0] = a0;
	call->args[1] = a1;
	call->args[2] = a2;
	call->args[3] = a3;
	call->args[4] = a4;
	call->args[5] = 0;
}

static uint64_t remaining(uint64_t since, uint64_t limit)
{
	uint64_t spent = clock_ticks() - since;

	return spent < limit ? limit - spent : 1;
}

static uint64_t patience(const struct web_connection *c)
{
	/*
	 * Opening has a limit, too: in drivers (web.h) that open without
	 * O_NONBLOCK, opening a pipe may wait for a writer.
	 */
	if (web_kind_of(c) > WEB_SEND && c->state != WEB_OPENING)
		return 0;
	if (c->state == WEB_LINGERING)
		return remaining(c->begun, WEB_LINGER);
	if (c->state == WEB_READING && c->begun)
		return remaining(c->begun, c->web->timeout);
	return c->web->timeout;
}

static void set_receive(struct web_connection *c, struct web_call *call)
{
	size_t at = c->state == WEB_LINGERING ? 0 : c->end;

	set(call, SYS_recvfrom, (uint64_t)c->fd, PTR(c->input + at),
	    sizeof(c->input) - at, 0, 0);
}

bool web_next(struct web_connection *c, struct web_call *call)
{
	uint64_t fd = (uint64_t)c->fd;

	call->kind = web_kind_of(c);
	call->patience = patience(c);
	switch (c->state) {
	case WEB_READING:
	case WEB_LINGERING:
		set_receive(c, call);
		break;
	case WEB_OPENING:
		set(call, SYS_openat2, (uint64_t)c->web->root,
		    PTR(c->path.name), PTR(&c->web->how), sizeof(c->web->how),
		    0);
		break;
	case WEB_LOOKING:
		set(call, SYS_statx, (uint64_t)c->own.fd, PTR(""),
		    AT_EMPTY_PATH, FILE_STATX, PTR(&c->stx));
		break;
	case WEB_LOADING:
		set(call, SYS_pread64, (uint64_t)c->own.fd,
		    PTR(c->body + c->have), c->needed - c->have,
		    c->offset + c->have, 0);
		break;
	case WEB_SENDING:
		set(call, SYS_sendto, fd, PTR(c->out), c->out_left,
		    MSG_NOSIGNAL | MSG_WAITALL | (c->left ? MSG_MORE : 0), 0);
		break;
	case WEB_PASSING:
		c->place = (int64_t)c->offset;
		set(call, SYS_sendfile, fd, (uint64_t)c->own.fd,
		    PTR(&c->place), c->left, 0);
		break;
	case WEB_DROPPING:
		set(call, SYS_close, (uint64_t)c->own.fd, 0, 0, 0, 0);
		break;
	case WEB_SHUTTING:
		set(call, SYS_shutdown, fd, SHUT_WR, 0, 0, 0);
		break;
	case WEB_CLOSING:
		set(call, SYS_close, fd, 0, 0, 0, 0);
		break;
	case WEB_OVER:
		return false;
	}
	return true;
}
