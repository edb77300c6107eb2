/* SPDX-License-Identifier: MIT */
/*
 * memcached on libflexsc: what memcached.c, proto_text.c and thread.c call. port.py
 * includes this at the end of memcached.h.
 */
#ifndef PORT_FLEXSC_H
#define PORT_FLEXSC_H

struct port_worker;
struct port_io;

/* A worker thread's loop. */
void port_worker_create(LIBEVENT_THREAD *me);
void port_worker_run(LIBEVENT_THREAD *me);
void port_worker_destroy(LIBEVENT_THREAD *me);
/* Any thread. */
void port_worker_wake(LIBEVENT_THREAD *me);
void port_worker_stop(LIBEVENT_THREAD *me);

/* On a worker, for a connection; on other threads, libevent's own functions. */
int port_event_add(struct event *event, const struct timeval *time);
int port_event_del(struct event *event);

/*
 * The calls on a connection's descriptor. A stream connection of the calling worker
 * receives from its loop, and sends through its loop. A send that is posted ends with -1
 * and EINPROGRESS, and port_sent() continues.
 */
ssize_t port_read(conn *c, void *buf, size_t count);
ssize_t port_sendmsg(conn *c, struct msghdr *msg, int flags);
ssize_t port_write(conn *c, const void *buf, size_t count);
void port_close(conn *c);

/* In memcached.c: take the result of a posted send; run the state machine. */
void port_sent(conn *c, ssize_t res);
void port_turn(conn *c);

#define event_add	port_event_add
#define event_del	port_event_del

#endif /* PORT_FLEXSC_H */
