/* SPDX-License-Identifier: MIT */
/* The headers that nginx' sources may include: see ngx_auto_config.h. */
#define NGX_LINUX		1
#define NGX_HAVE_CRYPT_H	1
#define NGX_HAVE_INTTYPES_H	1
#define NGX_HAVE_LIMITS_H	1
#define NGX_HAVE_SYS_MOUNT_H	1
#define NGX_HAVE_SYS_PARAM_H	1
#define NGX_HAVE_SYS_PRCTL_H	1
#define NGX_HAVE_SYS_STATVFS_H	1
#define NGX_HAVE_SYS_VFS_H	1
#define NGX_HAVE_UNISTD_H	1
