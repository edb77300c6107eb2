/* SPDX-License-Identifier: MIT */
/*
 * Describes an open file. The file's part of a head is formatted once, when the
 * file was opened and statx() was made, so answers from the cache only copy it.
 */
#include "file.h"

void file_describe(struct file *file, const struct statx *stx,
		   struct mime mime, const struct file_more *more)
{
	char *p = file->headers;

	file->size = stx->stx_size;
	file->modified = stx->stx_mtime.tv_sec;
	p = TEXT_PUT(p, "Content-Type: ");
	p = text_put(p, mime.type, mime.length);
	p = TEXT_PUT(p, "\r\nLast-Modified: ");
	file->date_at = p - file->headers;
	p = clock_date(p, file->modified);
	p = TEXT_PUT(p, "\r\nETag: ");
	file->etag_at = p - file->headers;
	/*
	 * The tag differs between files under the same name, and changes when a
	 * file is written again.
	 */
	*p++ = '"';
	p = text_hex(p, stx->stx_mtime.tv_sec * CLOCK_SECOND +
			stx->stx_mtime.tv_nsec);
	*p++ = '-';
	p = text_hex(p, stx->stx_size);
	*p++ = '-';
	p = text_hex(p, stx->stx_ino);
	*p++ = '"';
	file->etag_length = p - file_etag(file);
	p = TEXT_PUT(p, "\r\nAccept-Ranges: bytes\r\n");
	if (more)
		p = text_put(p, more->text, more->length);
	file->headers_length = p - file->headers;
}
