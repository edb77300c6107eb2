// SPDX-License-Identifier: MIT
#include "ecb.h"

void ecb_open(struct ecb *ecb, uint32_t events, uint32_t flags)
{
	int device = open("/dev/flexsc", O_RDWR | O_CLOEXEC);
	char *area;

	CHECK(device >= 0);
	memset(ecb, 0, sizeof(*ecb));
	ecb->args.size = sizeof(ecb->args);
	ecb->args.abi = FLEXSC_ECB_ABI_VERSION;
	ecb->args.events = events;
	ecb->args.flags = flags;
	ecb->fd = ioctl(device, FLEXSC_IOC_ECB, &ecb->args);
	CHECK(ecb->fd >= 0);
	CHECK_EQ(close(device), 0);
	area = mmap(NULL, ecb->args.area, PROT_READ | PROT_WRITE, MAP_SHARED,
		    ecb->fd, 0);
	CHECK(area != MAP_FAILED);
	ecb->control = (void *)area;
	ecb->slots = (void *)(area + FLEXSC_ECB_SLOTS_OFFSET);
}

void ecb_close(struct ecb *ecb)
{
	CHECK_EQ(munmap(ecb->control, ecb->args.area), 0);
	CHECK_EQ(close(ecb->fd), 0);
}
