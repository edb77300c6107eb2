/* SPDX-License-Identifier: MIT */
/*
 * Answers are collected in a turn, and sent together at its end. nginx sends
 * through a function pointer of the connection; the function here replaces
 * nginx' own while an answer of that connection may be collected. So all other
 * connections, such as those to a proxied server, cost nothing more than in
 * stock nginx.
 *
 * A collected answer looks to nginx as if the socket took no bytes at the
 * moment. So nginx does what it does for any slow client: it keeps the answer
 * and its buffers, begins no other request of the connection, and sets a time
 * limit. For nginx the socket stays ready, so nginx doesn't add it to epoll. When
 * the kernel has taken the bytes, nginx is called as for a writable socket, and
 * gets their number when it sends again. Everything else, such as bytes that
 * the kernel didn't take at once, is sent by nginx' function.
 *
 * 	FREE -> POSTED	nginx sends an answer that can be collected
 * 	POSTED -> SENT	the turn ends; the kernel never waits for the client
 * 	SENT -> FREE	nginx sends again, and gets the result
 * 	SENT -> FREE	the request is over, and the result isn't needed
 * 	POSTED -> LEFT	the request ends before the turn: the answer is sent now
 * 	LEFT -> FREE	the turn ends
 */
#include "module.h"

#include "lib/run/begun.h"

#include <sys/socket.h>

#define PIECES	8	/* nginx itself sends answers with more buffers */
#define MOST	(128 * 1024)

enum state { FREE, POSTED, SENT, LEFT };

/*
 * The answer of a connection. There is one for each element of nginx' array of
 * connections.
 */
struct answer {
	struct flexsc_cb cb;
	struct msghdr message;
	struct iovec pieces[PIECES];
	ngx_http_request_t *request;	/* NULL: no answer may be collected */
	ngx_connection_t *connection;
	ngx_event_handler_pt on_read;	/* the connection's, while POSTED */
	enum state state;
};

/* nginx' array of connections, and an answer for each. */
static const ngx_connection_t *connections;
static struct answer *answers;
static size_t count;

static ngx_send_chain_pt send_chain_of_nginx;
static ngx_int_t (*forget_of_nginx)(ngx_connection_t *c, ngx_uint_t flags);

/* The connection whose collected answer was sent, while nginx continues it. */
static const ngx_connection_t *answered;

static struct answer *answer_of(const ngx_connection_t *c)
{
	/* HTTP/2 makes connections of its own, which aren't in the array. */
	if (c < connections || c >= connections + count)
		return NULL;
	return &answers[c - connections];
}

/*
 * Fill the pieces from the answer. False: it can't be collected, because it is
 * incomplete or not all of it is in memory. Only a complete answer can be
 * collected, so that nothing is sent after it while it is posted.
 */
static bool answer_fill(struct answer *a, const ngx_chain_t *in, off_t limit)
{
	off_t bytes = 0;
	size_t n = 0;
	bool last = false;

	for (; in; in = in->next) {
		const ngx_buf_t *b = in->buf;

		last = b->last_buf;
		if (ngx_buf_special(b))
			continue;
		if (!ngx_buf_in_memory(b) || n == PIECES)
			return false;
		a->pieces[n].iov_base = b->pos;
		a->pieces[n++].iov_len = (size_t)(b->last - b->pos);
		bytes += b->last - b->pos;
	}
	a->message.msg_iov = a->pieces;
	a->message.msg_iovlen = n;
	if (limit == 0 || limit > MOST)
		limit = MOST;
	return last && bytes && bytes <= limit;
}

/*
 * Replaces a connection's read handler while its answer is posted. On other cores the
 * answer may reach the client, and the client may close the connection, before the
 * worker gets the result: nginx would log an answer that wasn't sent. nginx keeps in the
 * event that the socket is readable, and looks again when the answer is sent.
 */
static void ignore_read(ngx_event_t *event)
{
}

/* Give the connection its own read handler back. */
static void watch_read(const struct answer *a)
{
	if (a->connection->read->handler == ignore_read)
		a->connection->read->handler = a->on_read;
}

/* Called when the request ends, before its buffers and its socket are freed. */
static void answer_leave(void *data)
{
	struct answer *a = data;

	a->request = NULL;
	a->connection->send_chain = send_chain_of_nginx;
	if (a->state == POSTED) {
		flexsc__loop_begun(turn.loop);
		watch_read(a);
		/*
		 * If the kernel didn't take all bytes now, never send the rest:
		 * the connection may belong to another client by then.
		 */
		a->message.msg_iovlen = 0;
		a->state = LEFT;
	} else if (a->state == SENT) {
		a->state = FREE;
	}
}

/* Continue the connection in nginx, as for a writable socket. */
static void on_sent(struct flexsc_cb *cb)
{
	struct answer *a = cb->arg;
	ngx_event_t *write = a->connection->write;

	turn_completed();
	if (a->state == LEFT) {
		a->state = FREE;
		return;
	}
	watch_read(a);
	a->state = SENT;
	answered = a->connection;
	write->handler(write);
	answered = NULL;
}

/*
 * nginx calls this function of the event module right before it closes a
 * socket. If the connection ends with a collected answer, the next batch closes
 * the socket instead: nginx closes no socket of a connection that is marked as
 * shared.
 */
static ngx_int_t forget(ngx_connection_t *c, ngx_uint_t flags)
{
	ngx_int_t rc = forget_of_nginx(c, flags);

	if (c == answered && flags & NGX_CLOSE_EVENT &&
	    flexsc_loop_close(turn.loop, NULL, (unsigned int)c->fd) == 0) {
		c->shared = 1;
		turn.posted++;
	}
	return rc;
}

static bool answer_post(struct answer *a, ngx_connection_t *c, int flags)
{
	/*
	 * Declare the socket to the library as blocking, although it isn't, so
	 * that io_uring may send. MSG_DONTWAIT keeps the call from waiting.
	 */
	flexsc_fd_hint(c->fd, FLEXSC_FD_STREAM | FLEXSC_FD_BLOCKING);
	a->cb = (struct flexsc_cb){ .callback = on_sent, .arg = a };
	if (flexsc_loop_sendmsg(turn.loop, &a->cb, c->fd, &a->message,
				(unsigned int)flags) < 0)
		return false;
	turn_posted();
	a->on_read = c->read->handler;
	if (turn.apart)
		c->read->handler = ignore_read;
	a->state = POSTED;
	return true;
}

/*
 * Called when nginx retries the answer: account for what was sent. nginx sends the rest
 * itself, and so gets the kernel's error, if any.
 */
static ngx_chain_t *answer_sent(struct answer *a, ngx_connection_t *c,
				ngx_chain_t *in, off_t limit)
{
	a->state = FREE;
	if (a->cb.ret > 0) {
		c->sent += a->cb.ret;
		in = ngx_chain_update_sent(in, a->cb.ret);
	}
	return in ? send_chain_of_nginx(c, in, limit) : NULL;
}

/*
 * Will nginx close the connection right after this answer, and does the
 * configuration allow the end of the answer to wait for that (tcp_nopush)? If
 * the client has sent more by then, the close discards the bytes that wait.
 */
static bool is_last(ngx_http_request_t *r)
{
	const ngx_http_core_loc_conf_t *core =
		ngx_http_get_module_loc_conf(r, ngx_http_core_module);

	return core->tcp_nopush && !r->keepalive && r->count == 1 &&
	       !core->post_action.len;
}

/*
 * MSG_DONTWAIT: never wait for the client. MSG_MORE: hold back the end of a
 * last answer until the connection is closed.
 */
static int flags_of(ngx_http_request_t *r)
{
	return MSG_DONTWAIT | MSG_NOSIGNAL | (is_last(r) ? MSG_MORE : 0);
}

/*
 * An answer isn't posted if it is probably the only one of its turn. Then the
 * last answer of a connection is sent here, any other by nginx' function.
 */
static void answer_send(struct answer *a, ngx_connection_t *c)
{
	int flags = flags_of(a->request);

	if (turn_is_busy() && answer_post(a, c, flags))
		return;
	if (!(flags & MSG_MORE))
		return;
	a->cb.ret = sendmsg(c->fd, &a->message, flags);
	a->state = SENT;
}

/*
 * If nginx has begun to send an answer, and then replaces it by another one
 * (filter_finalize), the second one isn't collected: nginx' filters would take
 * the second for the beginning of the first.
 */
static bool may_collect(const struct answer *a, const ngx_connection_t *c)
{
	return a->request && a->request == c->data && c->write->ready &&
	       !a->request->filter_finalize &&
	       c->tcp_nopush != NGX_TCP_NOPUSH_SET;
}

static ngx_chain_t *send_chain(ngx_connection_t *c, ngx_chain_t *in,
			       off_t limit)
{
	struct answer *a = answer_of(c);

	if (a->state == FREE && may_collect(a, c) && answer_fill(a, in, limit))
		answer_send(a, c);
	switch (a->state) {
	case SENT:
		return answer_sent(a, c, in, limit);
	case POSTED:
		return in;
	case FREE:
	case LEFT:
		break;
	}
	return send_chain_of_nginx(c, in, limit);
}

void send_allow(ngx_http_request_t *r)
{
	struct answer *a = answer_of(r->connection);
	ngx_pool_cleanup_t *cleanup;

	if (!a || a->state != FREE || r->connection->ssl)
		return;
	cleanup = ngx_pool_cleanup_add(r->pool, 0);
	if (!cleanup)
		return;
	cleanup->handler = answer_leave;
	cleanup->data = a;
	a->request = r;
	a->connection = r->connection;
	r->connection->send_chain = send_chain;
}

ngx_int_t send_init(ngx_cycle_t *cycle)
{
	answers = ngx_calloc(cycle->connection_n * sizeof(*answers),
			     cycle->log);
	if (!answers)
		return NGX_ERROR;
	connections = cycle->connections;
	count = cycle->connection_n;
	send_chain_of_nginx = ngx_io.send_chain;
	forget_of_nginx = ngx_event_actions.del_conn;
	/* Of nginx' event modules, only epoll's has this function. */
	if (forget_of_nginx)
		ngx_event_actions.del_conn = forget;
	return NGX_OK;
}
