// SPDX-License-Identifier: MIT
#include "ecb.h"

struct ecb ecb;

void pair(int fds[2])
{
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
}

void send_byte(int fd)
{
	CHECK_EQ(write(fd, "x", 1), 1);
}

void receive_byte(int fd)
{
	CHECK_EQ(read(fd, &(char){ 0 }, 1), 1);
}

bool hung_up(int fd)
{
	ssize_t n = read(fd, &(char){ 0 }, 1);

	return n == 0 || (n < 0 && errno == ECONNRESET);
}

int listen_anywhere(struct sockaddr_un *name, socklen_t *size, int backlog)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);

	*name = (struct sockaddr_un){ .sun_family = AF_UNIX };
	*size = sizeof(*name);
	CHECK_EQ(bind(fd, (void *)name, sizeof(name->sun_family)), 0);
	CHECK_EQ(listen(fd, backlog), 0);
	CHECK_EQ(getsockname(fd, (void *)name, size), 0);
	return fd;
}

int ecb_try_open(struct ecb *ecb, uint32_t events, uint32_t flags)
{
	int device = open("/dev/flexsc", O_RDWR | O_CLOEXEC);

	CHECK(device >= 0);
	memset(ecb, 0, sizeof(*ecb));
	ecb->args.size = sizeof(ecb->args);
	ecb->args.abi = FLEXSC_ECB_ABI_VERSION;
	ecb->args.events = events;
	ecb->args.flags = flags;
	ecb->fd = ioctl(device, FLEXSC_IOC_ECB, &ecb->args);
	if (ecb->fd < 0)
		ecb->fd = -errno;
	CHECK_EQ(close(device), 0);
	return ecb->fd;
}

void ecb_open(struct ecb *ecb, uint32_t events, uint32_t flags)
{
	char *area;

	CHECK(ecb_try_open(ecb, events, flags) >= 0);
	area = mmap(NULL, ecb->args.area, PROT_READ | PROT_WRITE, MAP_SHARED,
		    ecb->fd, 0);
	CHECK(area != MAP_FAILED);
	ecb->control = (void *)area;
	ecb->slots = (void *)(area + FLEXSC_ECB_SLOTS_OFFSET);
	ecb->behind = calloc(events, sizeof(*ecb->behind));
	CHECK(ecb->behind);
}

void ecb_begin(uint32_t events, uint32_t flags, uint32_t groups)
{
	ecb_open(&ecb, events, flags);
	ecb_deliver(&ecb, groups);
	pair(fds);
}

void ecb_close(struct ecb *ecb)
{
	free(ecb->behind);
	CHECK_EQ(munmap(ecb->control, ecb->args.area), 0);
	CHECK_EQ(close(ecb->fd), 0);
}

static int give(struct ecb *ecb, const struct flexsc_ecb_watch *watch)
{
	int event = ioctl(ecb->fd, FLEXSC_ECB_WATCH, watch);

	return event < 0 ? -errno : event;
}

static uint32_t given(int event)
{
	CHECK(event >= 0);
	return (uint32_t)event;
}

int ecb_try_watch(struct ecb *ecb, int fd, uint32_t want, uint16_t group)
{
	const struct flexsc_ecb_watch watch = {
		.fd = fd,
		.want = want,
		.type = FLEXSC_EVT_IOREADY,
		.group = group,
		.data = (uint64_t)fd,
	};

	return give(ecb, &watch);
}

uint32_t ecb_watch(struct ecb *ecb, int fd, uint32_t want, uint16_t group)
{
	return given(ecb_try_watch(ecb, fd, want, group));
}

uint32_t ecb_watch_user(struct ecb *ecb, uint16_t group)
{
	const struct flexsc_ecb_watch watch = {
		.fd = -1,
		.type = FLEXSC_EVT_USER,
		.group = group,
	};

	return given(give(ecb, &watch));
}

int ecb_try_accept(struct ecb *ecb, int listener, uint16_t group,
		   uint32_t want, uint16_t inherited)
{
	const struct flexsc_ecb_watch watch = {
		.fd = listener,
		.want = POLLIN,
		.type = FLEXSC_EVT_IPACCEPT,
		.group = group,
		.flags = FLEXSC_WATCH_ACCEPT,
		.accept_want = want,
		.accept_group = inherited,
		.accept_flags = 04000 /* SOCK_NONBLOCK */,
		.accept_data = 77,
	};

	return give(ecb, &watch);
}

int ecb_forget(struct ecb *ecb, uint32_t event)
{
	return ioctl(ecb->fd, FLEXSC_ECB_FORGET, (unsigned long)event) ?
		-errno : 0;
}

/* Step U1: takes a whole list, whose order is newest first. */
static void take(struct ecb *ecb, unsigned int group)
{
	uint32_t event = __atomic_exchange_n(&ecb->control->head[group], 0,
					     __ATOMIC_ACQUIRE);

	while (event) {
		CHECK(event <= ecb->args.events);
		ecb->behind[event - 1] = ecb->first[group];
		ecb->first[group] = event;
		event = ecb->slots[event - 1].next;
	}
}

/* Step U2. */
static bool has(struct ecb *ecb, unsigned int group)
{
	if (!ecb->first[group])
		take(ecb, group);
	if (!ecb->first[group]) {
		__atomic_fetch_and(&ecb->control->pending, ~(1U << group),
				   __ATOMIC_SEQ_CST);
		take(ecb, group);
		if (ecb->first[group])
			__atomic_fetch_or(&ecb->control->pending, 1U << group,
					  __ATOMIC_SEQ_CST);
	}
	return ecb->first[group];
}

static bool pop(struct ecb *ecb, unsigned int group,
		struct flexsc_event_slot *out)
{
	uint32_t event = ecb->first[group] - 1;
	struct flexsc_event_slot *slot = &ecb->slots[event];

	ecb->first[group] = ecb->behind[event];
	*out = *slot;
	out->state = __atomic_exchange_n(&slot->state, 0, __ATOMIC_ACQ_REL);
	CHECK(out->state & FLEXSC_EVENT_QUEUED);
	return !(out->state & FLEXSC_EVENT_REVOKED);
}

bool ecb_next(struct ecb *ecb, uint32_t groups, struct flexsc_event_slot *out)
{
	uint32_t pending;

	while ((pending = __atomic_load_n(&ecb->control->pending,
					  __ATOMIC_ACQUIRE) & groups)) {
		unsigned int group = (unsigned int)__builtin_ctz(pending);

		if (has(ecb, group) && pop(ecb, group, out))
			return true;
	}
	return false;
}

int ecb_wait(struct ecb *ecb, uint32_t groups, uint64_t ns)
{
	ecb->control->deadline = ns == UINT64_MAX ? ns : now_ns() + ns;
	return (int)raw_syscall(SYS_lseek, (uint64_t)ecb->fd, groups,
				FLEXSC_ECB_WAIT_SEEK, 0, 0, 0);
}

void ecb_post(struct ecb *ecb, uint32_t event, uint16_t group, uint32_t bits)
{
	struct flexsc_event_slot *slot = &ecb->slots[event];
	uint32_t *head = &ecb->control->head[group];

	if (__atomic_fetch_or(&slot->state, FLEXSC_EVENT_QUEUED | bits,
			      __ATOMIC_ACQ_REL) & FLEXSC_EVENT_QUEUED)
		return;
	slot->next = __atomic_load_n(head, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(head, &slot->next, event + 1, false,
					    __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED))
		;
	__atomic_fetch_or(&ecb->control->pending, 1U << group, __ATOMIC_SEQ_CST);
	if ((ecb->control->waiting | ecb->control->notify) & 1U << group)
		ioctl(ecb->fd, FLEXSC_ECB_KICK, 1UL << group);
}

/* Pass files in messages. */

/* A message of one byte, and room for a descriptor. */
struct message {
	struct msghdr header;
	struct iovec part;
	char byte;
	char control[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8)));
};

static void message_prepare(struct message *message)
{
	memset(message, 0, sizeof(*message));
	message->byte = 'x';
	message->part = (struct iovec){ &message->byte, 1 };
	message->header.msg_iov = &message->part;
	message->header.msg_iovlen = 1;
	message->header.msg_control = message->control;
	message->header.msg_controllen = sizeof(message->control);
}

int pass_file(int socket, int fd)
{
	struct message message;
	struct cmsghdr *part;

	message_prepare(&message);
	part = CMSG_FIRSTHDR(&message.header);
	part->cmsg_level = SOL_SOCKET;
	part->cmsg_type = SCM_RIGHTS;
	part->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(part), &fd, sizeof(int));
	return sendmsg(socket, &message.header, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ?
		-errno : 0;
}

int take_file(int socket)
{
	struct message message;
	struct cmsghdr *part;
	int fd;

	message_prepare(&message);
	if (recvmsg(socket, &message.header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) < 0)
		return -errno;
	part = CMSG_FIRSTHDR(&message.header);
	if (!part || part->cmsg_type != SCM_RIGHTS)
		return -ENOMSG;
	memcpy(&fd, CMSG_DATA(part), sizeof(int));
	return fd;
}
