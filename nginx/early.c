/* SPDX-License-Identifier: MIT */
/*
 * Receives from a connection as soon as it is accepted, before epoll watches
 * it. Its request has usually arrived by then, and many connections end with
 * the answer, so epoll never watches them.
 *
 * nginx assumes that epoll watches a connection while nginx answers: epoll
 * reports that the client has gone, or that the first receive left bytes in the
 * socket. So a connection that outlives its turn is added to epoll before nginx
 * waits.
 *
 * nginx can receive early by itself, with the parameter "deferred" of "listen".
 * The module doesn't use "deferred": with it, nginx assumes that only one byte
 * has arrived. So when the first receive fills the buffer, nginx takes the
 * socket for empty, and receives the rest only after an event of epoll.
 */
#include "module.h"

#include <sys/socket.h>

#define MOST	256

/* Connections accepted in this turn. */
static struct {
	ngx_connection_t *connection;
	/*
	 * The connection's number when it was accepted. If it differs now, the
	 * connection has ended.
	 */
	ngx_atomic_uint_t number;
} accepted[MOST];
static ngx_uint_t count;

/*
 * Do the bytes complete a request, so that nginx expects no more before it
 * answers?
 */
static bool is_whole(const u_char *bytes, size_t length)
{
	return length > 8 && ngx_memcmp(bytes, "GET ", 4) == 0 &&
	       ngx_memcmp(bytes + length - 4, "\r\n\r\n", 4) == 0;
}

/*
 * Receive, and check whether the client has closed its side. Otherwise only an
 * event of epoll would report that.
 */
static ssize_t receive(ngx_connection_t *c, u_char *to, size_t size)
{
	ssize_t n = ngx_recv(c, to, size);
	u_char byte;

	if (n > 0 && (size_t)n < size && !c->read->active &&
	    !is_whole(to, (size_t)n) &&
	    recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0) {
		c->read->pending_eof = 1;
		c->read->ready = 1;
	}
	return n;
}

void early_watch(void)
{
	for (ngx_uint_t i = 0; i < count; i++) {
		ngx_connection_t *c = accepted[i].connection;

		if (c->fd == (ngx_socket_t)-1 ||
		    c->number != accepted[i].number)
			continue;
		if (c->recv == receive)
			c->recv = ngx_recv;
		if (c->read->active)
			continue;
		/*
		 * Ignore a failure, which nginx logs. Without epoll, nginx
		 * notices late that the client has gone.
		 */
		ngx_add_event(c->read, NGX_READ_EVENT, NGX_CLEAR_EVENT);
	}
	count = 0;
}

/* Called instead of nginx' function for a connection that was accepted. */
static void init_connection(ngx_connection_t *c)
{
	/* A connection is ready already if "deferred" is configured. */
	if (!c->read->ready) {
		if (count == MOST)
			early_watch();
		accepted[count].connection = c;
		accepted[count++].number = c->number;
		/*
		 * Set what an event of epoll sets: the socket is readable, and
		 * the number of available bytes is unknown.
		 */
		c->read->ready = 1;
		c->read->available = -1;
		c->recv = receive;
	}
	ngx_http_init_connection(c);
}

static const ngx_http_addr_conf_t *conf_of(const ngx_listening_t *ls,
					   ngx_uint_t i)
{
	const ngx_http_port_t *port = ls->servers;

	if (ls->sockaddr->sa_family == AF_INET6)
		return &((ngx_http_in6_addr_t *)port->addrs)[i].conf;
	return &((ngx_http_in_addr_t *)port->addrs)[i].conf;
}

/*
 * Does a server at this socket send before the client sends anything? With
 * HTTP/2 without TLS it sends its settings at once.
 */
static bool sends_first(const ngx_listening_t *ls)
{
	const ngx_http_port_t *port = ls->servers;

	for (ngx_uint_t i = 0; i < port->naddrs; i++)
		if (conf_of(ls, i)->http2 && !conf_of(ls, i)->ssl)
			return true;
	return false;
}

void early_init(ngx_cycle_t *cycle)
{
	ngx_listening_t *ls = cycle->listening.elts;

	if (!(ngx_event_flags & NGX_USE_EPOLL_EVENT))
		return;
	for (ngx_uint_t i = 0; i < cycle->listening.nelts; i++)
		if (ls[i].type == SOCK_STREAM &&
		    ls[i].handler == ngx_http_init_connection &&
		    !sends_first(&ls[i]))
			ls[i].handler = init_connection;
}
