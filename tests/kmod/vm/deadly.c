// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/deadly: its poll() ends the calling thread, as a bug in a driver may do. For
 * kmod-dying; built with the module that permits reboot().
 */
#include <linux/fs.h>
#include <linux/kprobes.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/poll.h>

/* The kernel doesn't export this function. */
static void (*end_thread)(long status);

static __poll_t deadly_poll(struct file *file, poll_table *table)
{
	end_thread(SIGKILL);
	return 0;
}

/*
 * Without an owner, because a thread that dies in poll() never releases its
 * reference to the file.
 */
static const struct file_operations deadly_operations = {
	.poll = deadly_poll,
};

static struct miscdevice deadly_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "deadly",
	.fops = &deadly_operations,
};

static int __init deadly_init(void)
{
	struct kprobe probe = { .symbol_name = "do_exit" };
	int err = register_kprobe(&probe);

	if (err)
		return err;
	end_thread = (void *)probe.addr;
	unregister_kprobe(&probe);
	return misc_register(&deadly_device);
}
module_init(deadly_init);

static void __exit deadly_exit(void)
{
	misc_deregister(&deadly_device);
}
module_exit(deadly_exit);

MODULE_DESCRIPTION("A file whose poll() ends the thread");
MODULE_LICENSE("GPL");
