/* SPDX-License-Identifier: MIT */
/*
 * Results and errors of calls on files, directories and links, compared with the
 * plain calls. See trial.h.
 */
#include "trial.h"

#include <linux/fs.h>
#include <sys/file.h>

#define CREATE	(O_CREAT | O_RDWR | O_CLOEXEC)

static const char *const text = "The quick brown fox";

/* A file that contains the text, with its position at the start. */
static int text_file(struct trial *t, const char *path)
{
	int fd = FD(SYS_openat, AT_FDCWD, path, CREATE, 0644);

	RET(SYS_write, fd, text, strlen(text));
	RET(SYS_lseek, fd, 0, SEEK_SET);
	return fd;
}

TRIAL(write_and_read_move_the_position)
{
	int fd = text_file(t, "f");
	char buf[64] = "";

	RET(SYS_read, fd, buf, 3);
	RET(SYS_read, fd, buf + 3, sizeof(buf) - 3);
	DATA(buf, sizeof(buf));
	RET(SYS_read, fd, buf, sizeof(buf));
	RET(SYS_lseek, fd, 0, SEEK_CUR);
	RET(SYS_write, fd, "!", 1);
	RET(SYS_lseek, fd, -4, SEEK_END);
	RET(SYS_read, fd, buf, sizeof(buf));
	DATA(buf, sizeof(buf));
	RET(SYS_close, fd);
	RET(SYS_close, fd);
}

TRIAL(pread_and_pwrite_leave_the_position)
{
	int fd = text_file(t, "f");
	char buf[64] = "";

	RET(SYS_pread64, fd, buf, 5, 4);
	DATA(buf, 5);
	RET(SYS_pwrite64, fd, "slow ", 5, 4);
	RET(SYS_lseek, fd, 0, SEEK_CUR);
	RET(SYS_pread64, fd, buf, sizeof(buf), 0);
	DATA(buf, sizeof(buf));
	RET(SYS_pread64, fd, buf, 1, 1000);
	RET(SYS_pread64, fd, buf, 1, -1);
	RET(SYS_pwrite64, fd, buf, 1, -1);
	RET(SYS_pwrite64, fd, "end", 3, 100);
	RET(SYS_lseek, fd, 0, SEEK_END);
}

TRIAL(vectors_are_scattered_and_gathered)
{
	int fd = text_file(t, "f");
	char a[4] = "", b[4] = "", c[32] = "";
	struct iovec v[3] = { { a, 4 }, { b, 4 }, { c, 32 } };

	RET(SYS_readv, fd, v, 3);
	DATA(a, 4), DATA(b, 4), DATA(c, 32);
	RET(SYS_writev, fd, v, 2);
	RET(SYS_preadv, fd, v, 2, 2, 0);
	DATA(a, 4), DATA(b, 4);
	RET(SYS_pwritev, fd, v, 3, 1, 0);
	RET(SYS_preadv2, fd, v, 3, -1, -1, 0);
	RET(SYS_preadv2, fd, v, 3, 0, 0, 0);
	DATA(a, 4), DATA(b, 4), DATA(c, 32);
	RET(SYS_preadv2, fd, v, 3, 0, 0, 0x40000000);
	RET(SYS_pwritev2, fd, v, 1, 0, 0, RWF_APPEND);
	RET(SYS_lseek, fd, 0, SEEK_END);
	RET(SYS_readv, fd, v, 0);
	RET(SYS_readv, fd, v, -1);
	RET(SYS_writev, fd, NULL, 1);
}

TRIAL(append_mode_writes_at_the_end)
{
	int fd = FD(SYS_openat, AT_FDCWD, "f", CREATE | O_APPEND, 0600);
	char buf[16] = "";

	RET(SYS_write, fd, "one", 3);
	RET(SYS_lseek, fd, 0, SEEK_SET);
	RET(SYS_write, fd, "two", 3);
	RET(SYS_pwrite64, fd, "three", 5, 0);
	RET(SYS_pread64, fd, buf, sizeof(buf), 0);
	DATA(buf, sizeof(buf));
}

TRIAL(open_reports_its_errors)
{
	char name[300];

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	FD(SYS_openat, AT_FDCWD, "none", O_RDONLY, 0);
	FD(SYS_openat, AT_FDCWD, "f", CREATE | O_EXCL, 0600);
	FD(SYS_openat, AT_FDCWD, "f", CREATE | O_EXCL, 0600);
	FD(SYS_openat, AT_FDCWD, "f/g", O_RDONLY, 0);
	FD(SYS_openat, AT_FDCWD, ".", O_RDWR, 0);
	FD(SYS_openat, AT_FDCWD, "f", O_RDONLY | O_DIRECTORY, 0);
	FD(SYS_openat, AT_FDCWD, "", O_RDONLY, 0);
	FD(SYS_openat, AT_FDCWD, name, O_RDONLY, 0);
	FD(SYS_openat, AT_FDCWD, NULL, O_RDONLY, 0);
	FD(SYS_openat, -1, "f", O_RDONLY, 0);
	FD(SYS_openat, 100000, "f", O_RDONLY, 0);
	FD(SYS_openat, AT_FDCWD, (char *)1, O_RDONLY, 0);
	FD(SYS_openat, AT_FDCWD, "f", O_WRONLY | O_TMPFILE, 0);
}

TRIAL(open_creates_with_mode_and_umask)
{
	struct statx stx;

	for (int mode = 0; mode < 01000; mode += 0123) {
		int fd = FD(SYS_openat, AT_FDCWD, "f", CREATE, mode);

		RET(SYS_statx, AT_FDCWD, "f", 0, STATX_MODE, &stx);
		trial_note(t, __LINE__, "mode", stx.stx_mode);
		RET(SYS_close, fd);
		RET(SYS_unlinkat, AT_FDCWD, "f", 0);
	}
}

TRIAL(openat2_resolves_as_told)
{
	/* struct open_how: flags, mode, resolve; RESOLVE_BENEATH is 8. */
	uint64_t how[4] = { O_RDONLY, 0, 8, 0 };
	int dir;

	RET(SYS_mkdirat, AT_FDCWD, "d", 0755);
	SYS(SYS_close, FD(SYS_openat, AT_FDCWD, "d/f", CREATE, 0644));
	dir = FD(SYS_openat, AT_FDCWD, "d", O_RDONLY | O_DIRECTORY, 0);
	FD(SYS_openat2, dir, "f", how, 24);
	FD(SYS_openat2, dir, "../d/f", how, 24);
	FD(SYS_openat2, dir, "/", how, 24);
	FD(SYS_openat2, dir, "f", how, 32);
	how[3] = 1;
	FD(SYS_openat2, dir, "f", how, 32);
	FD(SYS_openat2, dir, "f", how, 8);
	how[0] = 1ULL << 62;
	FD(SYS_openat2, dir, "f", how, 24);
	FD(SYS_openat2, dir, "f", NULL, 24);
}

/* Calls that transfer no data. pairs/waits.h covers the others. */
TRIAL(descriptors_of_the_wrong_kind_are_refused)
{
	static const int bad[] = { -1, -100, 1 << 20, 0x7fffffff };
	int fd = FD(SYS_openat, AT_FDCWD, "f", O_CREAT | O_WRONLY, 0600);
	int dir = FD(SYS_openat, AT_FDCWD, ".", O_RDONLY, 0);

	RET(SYS_ftruncate, dir, 0);
	RET(SYS_epoll_ctl, fd, 1, dir, NULL);
	for (unsigned int i = 0; i < 4; i++) {
		RET(SYS_read, bad[i], NULL, 1);
		RET(SYS_close, bad[i]);
		RET(SYS_fdatasync, bad[i]);
		RET(SYS_lseek, bad[i], 0, SEEK_SET);
		RET(SYS_ftruncate, bad[i], 0);
		RET(SYS_fallocate, bad[i], 0, 0, 1);
		RET(SYS_dup, bad[i]);
		RET(SYS_fcntl, bad[i], F_GETFL, 0);
		RET(SYS_splice, bad[i], NULL, bad[i], NULL, 0, 0);
		RET(SYS_shutdown, bad[i], 0);
		RET(SYS_flock, bad[i], LOCK_SH);
	}
}

TRIAL(bad_pointers_are_efault)
{
	int fd = text_file(t, "f");
	void *bad = (void *)8;

	RET(SYS_read, fd, bad, 4);
	RET(SYS_read, fd, NULL, 4);
	RET(SYS_write, fd, bad, 4);
	RET(SYS_pread64, fd, bad, 4, 0);
	RET(SYS_pwrite64, fd, NULL, 4, 0);
	RET(SYS_readv, fd, bad, 1);
	RET(SYS_writev, fd, bad, 1);
	RET(SYS_read, fd, NULL, 0);
	RET(SYS_write, fd, NULL, 0);
	RET(SYS_statx, AT_FDCWD, bad, 0, 0, bad);
	RET(SYS_statx, AT_FDCWD, "f", 0, STATX_BASIC_STATS, bad);
	RET(SYS_renameat2, AT_FDCWD, bad, AT_FDCWD, "x", 0);
	RET(SYS_unlinkat, AT_FDCWD, bad, 0);
	RET(SYS_mkdirat, AT_FDCWD, bad, 0);
	RET(SYS_linkat, AT_FDCWD, bad, AT_FDCWD, bad, 0);
	RET(SYS_symlinkat, bad, AT_FDCWD, bad);
	RET(SYS_pipe2, bad, 0);
	RET(SYS_lseek, fd, 0, SEEK_CUR);
}

static void note_statx(struct trial *t, const char *path, int flags)
{
	struct statx stx;

	memset(&stx, 0, sizeof(stx));
	RET(SYS_statx, AT_FDCWD, path, flags, STATX_BASIC_STATS, &stx);
	trial_note(t, __LINE__, "mode", stx.stx_mode);
	trial_note(t, __LINE__, "size", (int64_t)stx.stx_size);
	trial_note(t, __LINE__, "links", stx.stx_nlink);
}

TRIAL(statx_sees_what_there_is)
{
	struct statx stx;
	int fd = text_file(t, "f");

	note_statx(t, "f", 0);
	RET(SYS_symlinkat, "f", AT_FDCWD, "s");
	note_statx(t, "s", 0);
	note_statx(t, "s", AT_SYMLINK_NOFOLLOW);
	note_statx(t, "none", 0);
	note_statx(t, "f/x", 0);
	note_statx(t, "", 0);
	note_statx(t, "f", 0x40000000);
	RET(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_SIZE, &stx);
	trial_note(t, __LINE__, "size", (int64_t)stx.stx_size);
	RET(SYS_statx, -1, "", AT_EMPTY_PATH, STATX_SIZE, &stx);
	RET(SYS_statx, fd, NULL, AT_EMPTY_PATH, STATX_SIZE, &stx);
	RET(SYS_statx, fd, NULL, 0, STATX_SIZE, &stx);
	RET(SYS_statx, AT_FDCWD, "f", 0, 0x80000000U, &stx);
}

TRIAL(fstat_sees_what_there_is)
{
	int fd = text_file(t, "f");
	struct stat st;

	RET(SYS_fstat, fd, &st);
	trial_note(t, __LINE__, "size", st.st_size);
	trial_note(t, __LINE__, "mode", st.st_mode);
	RET(SYS_fstat, -1, &st);
	RET(SYS_fstat, fd, NULL);
	RET(SYS_newfstatat, AT_FDCWD, "f", &st, 0);
	trial_note(t, __LINE__, "size", st.st_size);
	RET(SYS_newfstatat, AT_FDCWD, "none", &st, 0);
	RET(SYS_faccessat, AT_FDCWD, "f", R_OK);
	RET(SYS_faccessat, AT_FDCWD, "none", R_OK);
	RET(SYS_fchmodat, AT_FDCWD, "f", 0400);
	RET(SYS_fstat, fd, &st);
	trial_note(t, __LINE__, "mode", st.st_mode);
}

TRIAL(rename_unlink_mkdir_report_their_errors)
{
	SYS(SYS_close, text_file(t, "f"));
	RET(SYS_mkdirat, AT_FDCWD, "d", 0755);
	RET(SYS_mkdirat, AT_FDCWD, "d", 0755);
	RET(SYS_mkdirat, AT_FDCWD, "f/d", 0755);
	RET(SYS_mkdirat, AT_FDCWD, "none/d", 0755);
	RET(SYS_unlinkat, AT_FDCWD, "d", 0);
	RET(SYS_unlinkat, AT_FDCWD, "f", AT_REMOVEDIR);
	RET(SYS_unlinkat, AT_FDCWD, "none", 0);
	RET(SYS_unlinkat, AT_FDCWD, "none", AT_REMOVEDIR);
	RET(SYS_unlinkat, AT_FDCWD, "f", 0x40000000);
	RET(SYS_renameat2, AT_FDCWD, "f", AT_FDCWD, "d/g", 0);
	RET(SYS_renameat2, AT_FDCWD, "f", AT_FDCWD, "d/g", 0);
	RET(SYS_renameat2, AT_FDCWD, "d", AT_FDCWD, "d/e", 0);
	RET(SYS_renameat2, AT_FDCWD, "d/g", AT_FDCWD, "d", 0);
	RET(SYS_renameat2, AT_FDCWD, "d/g", AT_FDCWD, "d", 1);
	RET(SYS_renameat2, AT_FDCWD, "d/g", AT_FDCWD, "d", 0x80);
	RET(SYS_renameat, AT_FDCWD, "d/g", AT_FDCWD, "h");
	RET(SYS_unlinkat, AT_FDCWD, "d", AT_REMOVEDIR);
	RET(SYS_unlinkat, AT_FDCWD, "h", 0);
}

TRIAL(links_link)
{
	char buf[16] = "";

	SYS(SYS_close, text_file(t, "f"));
	RET(SYS_linkat, AT_FDCWD, "f", AT_FDCWD, "g", 0);
	RET(SYS_linkat, AT_FDCWD, "f", AT_FDCWD, "g", 0);
	RET(SYS_linkat, AT_FDCWD, "none", AT_FDCWD, "h", 0);
	RET(SYS_linkat, AT_FDCWD, ".", AT_FDCWD, "h", 0);
	note_statx(t, "g", 0);
	RET(SYS_symlinkat, "target", AT_FDCWD, "s");
	RET(SYS_symlinkat, "target", AT_FDCWD, "s");
	RET(SYS_symlinkat, "", AT_FDCWD, "e");
	RET(SYS_readlinkat, AT_FDCWD, "s", buf, sizeof(buf));
	DATA(buf, sizeof(buf));
	RET(SYS_readlinkat, AT_FDCWD, "s", buf, 3);
	RET(SYS_readlinkat, AT_FDCWD, "s", buf, 0);
	RET(SYS_readlinkat, AT_FDCWD, "f", buf, sizeof(buf));
	FD(SYS_openat, AT_FDCWD, "s", O_RDONLY, 0);
	FD(SYS_openat, AT_FDCWD, "s", O_RDONLY | O_NOFOLLOW, 0);
	RET(SYS_symlinkat, "loop", AT_FDCWD, "loop");
	FD(SYS_openat, AT_FDCWD, "loop", O_RDONLY, 0);
}

TRIAL(sizes_change)
{
	int fd = text_file(t, "f");

	RET(SYS_ftruncate, fd, 4);
	note_statx(t, "f", 0);
	RET(SYS_ftruncate, fd, -1);
	RET(SYS_truncate, "f", 10000);
	note_statx(t, "f", 0);
	RET(SYS_truncate, "none", 0);
	RET(SYS_fallocate, fd, 0, 0, 20000);
	note_statx(t, "f", 0);
	RET(SYS_fallocate, fd, 1, 0, 40000);
	note_statx(t, "f", 0);
	RET(SYS_fallocate, fd, 0, -1, 10);
	RET(SYS_fallocate, fd, 0, 0, 0);
	RET(SYS_fallocate, fd, 0x1000, 0, 10);
	RET(SYS_fsync, fd);
	RET(SYS_fdatasync, fd);
	RET(SYS_sync_file_range, fd, 0, 0, 0);
	RET(SYS_sync_file_range, fd, 0, 0, 0x100);
	RET(SYS_fadvise64, fd, 0, 0, 0);
	RET(SYS_fadvise64, fd, 0, 0, 99);
}

TRIAL(getdents64_lists_a_folder)
{
	char buf[1024];
	int fd;

	memset(buf, 0, sizeof(buf));
	for (char name[2] = "a"; name[0] < 'f'; name[0]++)
		RET(SYS_mkdirat, AT_FDCWD, name, 0700);
	fd = FD(SYS_openat, AT_FDCWD, ".", O_RDONLY | O_DIRECTORY, 0);
	RET(SYS_getdents64, fd, buf, 4);
	RET(SYS_getdents64, fd, buf, sizeof(buf));
	RET(SYS_getdents64, fd, buf, sizeof(buf));
	RET(SYS_lseek, fd, 0, SEEK_SET);
	RET(SYS_getdents64, fd, NULL, sizeof(buf));
}

TRIAL(extended_attributes_are_set_and_read)
{
	int fd = text_file(t, "f");
	char value[8] = "";

	RET(SYS_fsetxattr, fd, "user.colour", "blue", 4, 0);
	RET(SYS_fgetxattr, fd, "user.colour", value, sizeof(value));
	DATA(value, sizeof(value));
	RET(SYS_getxattr, "f", "user.colour", value, 2);
	RET(SYS_getxattr, "none", "user.colour", value, 2);
	RET(SYS_getxattr, "f", "user.none", value, 2);
	RET(SYS_setxattr, "f", "user.colour", "red", 3, 1);
	RET(SYS_setxattr, "f", "user.shape", "cube", 4, 2);
}

TRIAL(copying_in_the_kernel_copies)
{
	int in = text_file(t, "f");
	int out = FD(SYS_openat, AT_FDCWD, "g", CREATE, 0600);
	int64_t offset = 4;
	char buf[32] = "";

	RET(SYS_sendfile, out, in, NULL, 3);
	RET(SYS_sendfile, out, in, &offset, 5);
	trial_note(t, __LINE__, "offset", offset);
	RET(SYS_lseek, in, 0, SEEK_CUR);
	RET(SYS_copy_file_range, in, NULL, out, NULL, 4, 0);
	RET(SYS_copy_file_range, in, NULL, out, NULL, 4, 1);
	RET(SYS_pread64, out, buf, sizeof(buf), 0);
	DATA(buf, sizeof(buf));
	RET(SYS_sendfile, out, -1, NULL, 1);
	RET(SYS_sendfile, -1, in, NULL, 1);
}

TRIAL(locks_conflict_only_where_they_do)
{
	int a = text_file(t, "f");
	int b = FD(SYS_openat, AT_FDCWD, "f", O_RDWR, 0);
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	RET(SYS_flock, a, LOCK_EX);
	RET(SYS_flock, b, LOCK_EX | LOCK_NB);
	RET(SYS_flock, a, LOCK_UN);
	RET(SYS_flock, b, LOCK_EX);
	RET(SYS_flock, b, LOCK_UN);
	RET(SYS_flock, b, 99);
	RET(SYS_fcntl, a, F_OFD_SETLK, &lock);
	RET(SYS_fcntl, b, F_OFD_SETLK, &lock);
	lock.l_type = F_UNLCK;
	RET(SYS_fcntl, a, F_OFD_SETLK, &lock);
	lock.l_type = F_WRLCK;
	RET(SYS_fcntl, b, F_OFD_SETLKW, &lock);
	lock.l_type = F_UNLCK;
	RET(SYS_fcntl, b, F_OFD_SETLK, &lock);
	lock.l_type = F_WRLCK;
	RET(SYS_fcntl, b, F_SETLKW, &lock);
	lock.l_pid = 1;
	RET(SYS_fcntl, b, F_OFD_SETLKW, &lock);
}

enum { SHARERS = 4, BATCHES = 100, BATCH = 16, RECORD = 64 };

static int shared_fd;

/* The position belongs to the file: posts to several loops share it. */
static void *write_records(void *arg)
{
	struct flexsc_loop *loop = test_loop();
	struct call calls[BATCH];
	char record[RECORD];

	memset(record, 'a' + (int)(intptr_t)arg, sizeof(record));
	for (int i = 0; i < BATCHES; i++) {
		for (int j = 0; j < BATCH; j++) {
			calls[j] = (struct call)CALL_INIT;
			POST(loop, &calls[j], SYS_write, shared_fd, record,
			     RECORD);
		}
		for (int j = 0; j < BATCH; j++)
			CHECK_EQ(await_call(loop, &calls[j]), RECORD);
	}
	CHECK_EQ(flexsc_loop_destroy(loop), 0);
	return NULL;
}

TEST(loops_share_a_position)
{
	const off_t size = (off_t)SHARERS * BATCHES * BATCH * RECORD;
	unsigned int n[SHARERS] = { 0 };
	pthread_t threads[SHARERS];
	char record[RECORD];

	enter_scratch();
	shared_fd = open(".", O_TMPFILE | O_RDWR, 0600);
	CHECK(shared_fd >= 0);
	for (intptr_t i = 0; i < SHARERS; i++)
		threads[i] = test_thread(write_records, (void *)i);
	for (int i = 0; i < SHARERS; i++)
		pthread_join(threads[i], NULL);
	CHECK_EQ(lseek(shared_fd, 0, SEEK_CUR), size);
	CHECK_EQ(lseek(shared_fd, 0, SEEK_SET), 0);
	while (read(shared_fd, record, RECORD) == RECORD) {
		CHECK_EQ(record[0], record[RECORD - 1]);
		n[record[0] - 'a']++;
	}
	for (int i = 0; i < SHARERS; i++)
		CHECK_EQ(n[i], BATCHES * BATCH);
}
