/* SPDX-License-Identifier: MIT */
/*
 * The connections of memcached's workers on libflexsc. thread.c includes this file.
 *
 * Each worker thread has a loop. A stream connection has one receive, which completes
 * for all data that arrives, and at most one posted send:
 *
 *	READY	no send is posted: received data runs the connection's state machine
 *	SENDING	the responses belong to the kernel: received data is kept
 *	AWAY	another thread, or a queue of disk reads, has the connection: likewise
 *	CLOSED	the connection is gone: the struct waits for its callbacks
 *
 * Datagram sockets wait by a posted poll(), and are read and written plainly.
 *
 * MEMCACHED_KERNEL_CORES and MEMCACHED_POLL_US are the loops' options kernel_cores and
 * poll_us; FLEXSC_ENGINE is their engine.
 */
#undef event_add
#undef event_del
#include <flexsc/flexsc.h>
#include <poll.h>

#define BUFFERS		256
#define BUFFER_SIZE	(READ_BUFFER_SIZE + 64)	/* not all in the same cache sets */
#define KEPT_MOST	65536	/* bytes that wait for a busy connection */
#define SHORT		8	/* iovecs without memory of their own */

struct port_worker {
	struct flexsc_loop *loop;
	struct flexsc_buffers *buffers;
	struct flexsc_cb notify;
	bool remote;		/* calls execute on other cores: always post */
	unsigned int received;	/* number of receives */
};

struct port_io {
	struct flexsc_cb receive, send, again, poll;
	conn *c;		/* NULL: CLOSED */
	short wants;		/* EV_READ, EV_WRITE; 0: AWAY */
	bool receiving, sending, waking, polling, driving, paused;
	bool ended;		/* the receive's last result is in "last" */
	int last;
	const char *now;	/* received data, in a buffer of the loop */
	size_t now_len;
	char *kept;		/* received before, from "begin" to "end" */
	size_t begin, end, room;
	struct pollfd pollfd;
	struct msghdr msg;
	struct iovec *iovs;	/* NULL, or memory for a long list */
	struct iovec few[SHORT];
	unsigned int received;	/* the worker's number at the last receive */
	unsigned int active;	/* receives of all since then: active connections */
};

static __thread struct port_worker *self;	/* NULL: not a worker */

static void fail(const char *what, int err)
{
	fprintf(stderr, "memcached: libflexsc: %s: %s\n", what, strerror(-err));
	exit(EXIT_FAILURE);
}

/* Memory. */

static void io_release(struct port_io *io)
{
	if (io->c || io->receiving || io->sending || io->waking ||
	    io->polling || io->driving)
		return;
	free(io->iovs);
	free(io->kept);
	free(io);
}

/* Keep data for later, so that its buffer can go back. */
static bool io_keep(struct port_io *io, const char *data, size_t len)
{
	if (io->begin == io->end)
		io->begin = io->end = 0;
	if (io->room - io->end < len) {
		size_t room = io->end + len + READ_BUFFER_SIZE;
		char *kept = realloc(io->kept, room);

		if (!kept)
			return false;
		io->kept = kept;
		io->room = room;
	}
	memcpy(io->kept + io->end, data, len);
	io->end += len;
	return true;
}

static size_t io_take(struct port_io *io, void *buf, size_t count)
{
	size_t kept = io->end - io->begin;

	if (kept) {
		count = count < kept ? count : kept;
		memcpy(buf, io->kept + io->begin, count);
		io->begin += count;
		if (io->begin == io->end) {
			free(io->kept);
			io->kept = NULL;
			io->begin = io->end = io->room = 0;
		}
		return count;
	}
	count = count < io->now_len ? count : io->now_len;
	memcpy(buf, io->now, count);
	io->now += count;
	io->now_len -= count;
	return count;
}

static bool io_has_data(const struct port_io *io)
{
	return io->now_len || io->begin != io->end || io->ended;
}

/* Receiving. */

static void io_received(struct flexsc_cb *cb);

static void io_end(struct port_io *io, int last)
{
	io->ended = true;
	io->last = last;
}

static void io_receive(struct port_io *io)
{
	int err;

	io->paused = false;
	io->receive.callback = io_received;
	io->receive.arg = io;
	err = flexsc_loop_recv_multishot(self->loop, &io->receive, io->c->sfd,
					 self->buffers);
	io->receiving = !err;
	if (err)
		io_end(io, err);
}

static bool io_is_ready(const struct port_io *io)
{
	return io->c && io->wants && !io->sending && !io->driving;
}

/* Run the state machine as long as it has something to do. */
static void io_drive(struct port_io *io)
{
	if (!io_is_ready(io))
		return;
	io->driving = true;
	do
		port_turn(io->c);
	while (io->c && io->wants && !io->sending &&
	       (io_has_data(io) || io->wants & EV_WRITE));
	io->driving = false;
	if (io->c && !io->receiving && !io_has_data(io))
		io_receive(io);
}

/* Data that the state machine left, because it is busy or away. */
static void io_keep_rest(struct port_io *io)
{
	if (io->now_len && io->c && !io_keep(io, io->now, io->now_len))
		io_end(io, -ENOMEM);
	io->now_len = 0;
	if (io->end - io->begin > KEPT_MOST && io->receiving && !io->paused) {
		io->paused = true;
		flexsc_loop_cancel(self->loop, &io->receive);
	}
}

static void io_received(struct flexsc_cb *cb)
{
	struct port_io *io = cb->arg;
	char *data = flexsc_buffers_data(self->buffers, cb);

	io->active = ++self->received - io->received;
	io->received = self->received;
	io->receiving = flexsc_cb_more(cb);
	if (!io->receiving && io->c && cb->ret <= 0 && cb->ret != -ENOBUFS &&
	    cb->ret != -ERESTART && !(cb->ret == -ECANCELED && io->paused))
		io_end(io, (int)cb->ret);
	if (data) {
		io->now = data;
		io->now_len = (size_t)cb->ret;
	}
	if (io->c && !io->receiving && !io->ended && !io->paused)
		io_receive(io);
	io_drive(io);
	io_keep_rest(io);
	if (data)
		flexsc_buffers_return(self->buffers, data);
	io_release(io);
}

ssize_t port_read(conn *c, void *buf, size_t count)
{
	struct port_io *io = c->io;

	if (!self || !io)
		return recv(c->sfd, buf, count, MSG_DONTWAIT);
	if (io->now_len || io->begin != io->end)
		return (ssize_t)io_take(io, buf, count);
	if (io->ended && !io->last)
		return 0;
	errno = io->ended ? -io->last : EAGAIN;
	return -1;
}

/* Sending. */

static void io_sent(struct flexsc_cb *cb)
{
	struct port_io *io = cb->arg;

	io->sending = false;
	if (io->iovs) {
		free(io->iovs);
		io->iovs = NULL;
	}
	if (io->c) {
		port_sent(io->c, cb->ret);
		io_drive(io);
		io_keep_rest(io);
	}
	io_release(io);
}

/*
 * Posting pays if the sends of many connections enter the kernel together. A plain call
 * is cheaper if no other connection has received since this one's last request.
 */
static bool sends_plainly(const struct port_io *io)
{
	return !self->remote && io->active == 1;
}

ssize_t port_sendmsg(conn *c, struct msghdr *msg, int flags)
{
	struct port_io *io = c->io;
	struct iovec *iovs;
	ssize_t res;
	int err;

	if (!self || !io || sends_plainly(io)) {
		res = sendmsg(c->sfd, msg, flags | MSG_DONTWAIT);
		if (!self || !io || res >= 0 || errno != EAGAIN)
			return res;
	}
	iovs = io->few;
	if (msg->msg_iovlen > SHORT) {
		iovs = malloc(msg->msg_iovlen * sizeof(*iovs));
		if (!iovs) {
			errno = ENOMEM;
			return -1;
		}
		io->iovs = iovs;
	}
	memcpy(iovs, msg->msg_iov, msg->msg_iovlen * sizeof(*iovs));
	io->msg.msg_iov = iovs;
	io->msg.msg_iovlen = msg->msg_iovlen;
	io->send.callback = io_sent;
	io->send.arg = io;
	err = flexsc_loop_sendmsg(self->loop, &io->send, c->sfd, &io->msg,
				  flags);
	io->sending = !err;
	errno = err ? -err : EINPROGRESS;
	return -1;
}

/* For the threads that have taken a connection away from its worker. */
ssize_t port_write(conn *c, const void *buf, size_t count)
{
	return send(c->sfd, buf, count, MSG_DONTWAIT);
}

/* Datagrams. */

static void io_poll(struct port_io *io);

static void io_polled(struct flexsc_cb *cb)
{
	struct port_io *io = cb->arg;

	io->polling = false;
	if (io->c && io->wants) {
		port_turn(io->c);
		io_poll(io);
	}
	io_release(io);
}

static void io_poll(struct port_io *io)
{
	int err;

	if (!io->c || !io->wants || io->polling)
		return;
	io->pollfd.fd = io->c->sfd;
	io->pollfd.events = io->wants & EV_WRITE ? POLLOUT : POLLIN;
	io->poll.callback = io_polled;
	io->poll.arg = io;
	err = flexsc_loop_poll(self->loop, &io->poll, &io->pollfd, 1, -1);
	if (err)
		fail("waiting for a datagram", err);
	io->polling = true;
}

/* Connections. */

static void io_again(struct flexsc_cb *cb)
{
	struct port_io *io = cb->arg;

	io->waking = false;
	io_drive(io);
	io_release(io);
}

static int io_create(conn *c)
{
	struct port_io *io = calloc(1, sizeof(*io));

	if (!io)
		return -1;
	io->c = c;
	c->io = io;
	if (IS_UDP(c->transport))
		return 0;
	flexsc_fd_hint(c->sfd, FLEXSC_FD_STREAM | FLEXSC_FD_BLOCKING);
	io_receive(io);
	return 0;
}

int port_event_add(struct event *event, const struct timeval *time)
{
	conn *c = event_get_callback_arg(event);
	struct port_io *io;

	if (!self)
		return event_add(event, time);
	if (!c->io && io_create(c))
		return -1;
	io = c->io;
	io->wants = event_get_events(event) & (EV_READ | EV_WRITE);
	if (IS_UDP(c->transport)) {
		io_poll(io);
	} else if (!io->driving && io_has_data(io) && !io->waking) {
		io->again.callback = io_again;
		io->again.arg = io;
		io->waking = true;
		flexsc_loop_wake(self->loop, &io->again);
	}
	return 0;
}

int port_event_del(struct event *event)
{
	conn *c = event_get_callback_arg(event);

	if (!self)
		return event_del(event);
	if (c->io)
		c->io->wants = 0;
	return 0;
}

/*
 * At the end of the process, the main thread closes the connections of workers that wait
 * for it. They then destroy their loops, which ends pending calls.
 */
void port_close(conn *c)
{
	struct port_io *io = c->io;

	c->io = NULL;
	if (!self) {
		if (io)
			io->c = NULL;
		close(c->sfd);
		return;
	}
	if (io) {
		io->c = NULL;
		if (io->receiving)
			flexsc_loop_cancel(self->loop, &io->receive);
		io_release(io);
	}
	if (flexsc_loop_close(self->loop, NULL, c->sfd)) {
		flexsc_fd_forget(c->sfd);
		close(c->sfd);
	}
}

/* Workers. */

static void port_notified(struct flexsc_cb *cb)
{
	LIBEVENT_THREAD *me = cb->arg;

	thread_libevent_process(-1, 0, me);
}

void port_worker_create(LIBEVENT_THREAD *me)
{
	struct flexsc_options options = FLEXSC_OPTIONS_INIT;
	struct port_worker *worker = calloc(1, sizeof(*worker));
	const char *poll_us = getenv("MEMCACHED_POLL_US");
	int err;

	if (!worker)
		fail("no memory", -ENOMEM);
	options.kernel_cores = getenv("MEMCACHED_KERNEL_CORES");
	options.poll_us = poll_us ? (uint32_t)atoi(poll_us) : 0;
	worker->remote = options.kernel_cores;
	worker->notify.callback = port_notified;
	worker->notify.arg = me;
	err = flexsc_loop_create(&worker->loop, &options);
	if (!err)
		err = flexsc_buffers_create(worker->loop, &worker->buffers,
					    BUFFERS, BUFFER_SIZE);
	if (err)
		fail("can't create a loop", err);
	me->port = self = worker;
}

void port_worker_run(LIBEVENT_THREAD *me)
{
	struct flexsc_loop *loop = me->port->loop;
	int err;

	flexsc_loop_ref(loop);	/* for wake-ups */
	err = flexsc_loop_run(loop);
	if (err)
		fail("the loop failed", err);
}

void port_worker_destroy(LIBEVENT_THREAD *me)
{
	flexsc_loop_destroy(me->port->loop);
	self = NULL;
	free(me->port);
	me->port = NULL;
}

void port_worker_wake(LIBEVENT_THREAD *me)
{
	flexsc_loop_wake(me->port->loop, &me->port->notify);
}

void port_worker_stop(LIBEVENT_THREAD *me)
{
	flexsc_loop_stop(me->port->loop);
}
