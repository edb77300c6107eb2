// SPDX-License-Identifier: MIT
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "passing.h"

/* A message of one byte, and room for a descriptor. */
struct message {
	struct msghdr header;
	struct iovec part;
	char byte;
	char control[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8)));
};

static void prepare(struct message *message)
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

	prepare(&message);
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

	prepare(&message);
	if (recvmsg(socket, &message.header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) < 0)
		return -errno;
	part = CMSG_FIRSTHDR(&message.header);
	if (!part || part->cmsg_type != SCM_RIGHTS)
		return -ENOMSG;
	memcpy(&fd, CMSG_DATA(part), sizeof(int));
	return fd;
}
