/* SPDX-License-Identifier: MIT */
/*
 * The distribution's nginx configuration, as far as its headers need it: what
 * its "configure" would write for 64-bit Linux and "--with-compat", without the
 * half minute that takes. nginx compares these values with its own when it
 * loads a module, and refuses a module that differs as "not binary compatible".
 */

/* Available features. */
#define NGX_COMPILER			"cc"
#define NGX_CONFIGURE			""
#define NGX_DEBUG			1
#define NGX_SMP				1
#define NGX_HAVE_ACCEPT4		1
#define NGX_HAVE_ALIGNED_DIRECTIO	1
#define NGX_HAVE_C99_VARIADIC_MACROS	1
#define NGX_HAVE_CLEAR_EVENT		1
#define NGX_HAVE_DEFERRED_ACCEPT	1
#define NGX_HAVE_EPOLL			1
#define NGX_HAVE_EPOLLRDHUP		1
#define NGX_HAVE_EVENTFD		1
#define NGX_HAVE_GCC_ATOMIC		1
#define NGX_HAVE_GCC_BSWAP64		1
#define NGX_HAVE_GCC_VARIADIC_MACROS	1
#define NGX_HAVE_GMTOFF			1
#define NGX_HAVE_INET6			1
#define NGX_HAVE_IP_PKTINFO		1
#define NGX_HAVE_KEEPALIVE_TUNABLE	1
#define NGX_HAVE_LITTLE_ENDIAN		1
#define NGX_HAVE_MSGHDR_MSG_CONTROL	1
#define NGX_HAVE_NONALIGNED		1
#define NGX_HAVE_OPENAT			1
#define NGX_HAVE_O_DIRECT		1
#define NGX_HAVE_POSIX_FADVISE		1
#define NGX_HAVE_POSIX_SEM		1
#define NGX_HAVE_PREAD			1
#define NGX_HAVE_PWRITE			1
#define NGX_HAVE_PWRITEV		1
#define NGX_HAVE_REUSEPORT		1
#define NGX_HAVE_SENDFILE		1
#define NGX_HAVE_SENDFILE64		1
#define NGX_HAVE_STATFS			1
#define NGX_HAVE_STATVFS		1
#define NGX_HAVE_TCP_FASTOPEN		1
#define NGX_HAVE_TCP_INFO		1
#define NGX_HAVE_UNIX_DOMAIN		1

/* Sizes. */
#define NGX_CPU_CACHE_LINE		64
#define NGX_KQUEUE_UDATA_T		(void *)
#define NGX_PTR_SIZE			8
#define NGX_SIG_ATOMIC_T_SIZE		4
#define NGX_TIME_T_SIZE			8
#define NGX_MAX_OFF_T_VALUE		9223372036854775807LL
#define NGX_MAX_SIZE_T_VALUE		9223372036854775807LL
#define NGX_MAX_TIME_T_VALUE		9223372036854775807LL
#define NGX_OFF_T_LEN			(sizeof("-9223372036854775808") - 1)
#define NGX_SIZE_T_LEN			(sizeof("-9223372036854775808") - 1)
#define NGX_TIME_T_LEN			(sizeof("-9223372036854775808") - 1)

/* Compiled-in features of nginx, which add fields to its structures. */
#define NGX_COMPAT			1
#define NGX_CRYPT			1
#define NGX_HTTP_CACHE			1
#define NGX_HTTP_DAV			1
#define NGX_HTTP_GZIP			1
#define NGX_HTTP_HEADERS		1
#define NGX_HTTP_REALIP			1
#define NGX_HTTP_SSI			1
#define NGX_HTTP_SSL			1
#define NGX_HTTP_UPSTREAM_ZONE		1
#define NGX_HTTP_V2			1
#define NGX_HTTP_X_FORWARDED_FOR	1
#define NGX_OPENSSL			1
#define NGX_PCRE			1
#define NGX_PCRE2			1
#define NGX_SSL				1
#define NGX_STAT_STUB			1
#define NGX_STREAM_UPSTREAM_ZONE	1
#define NGX_THREADS			1
#define NGX_ZLIB			1
