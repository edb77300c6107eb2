/* SPDX-License-Identifier: MIT */
#include "reply.h"

static int on_head_complete(llhttp_t *parser)
{
	struct reply *reply = parser->data;

	reply->complete = true;
	reply->has_length = parser->flags & F_CONTENT_LENGTH;
	reply->length = parser->content_length;
	reply->keep_alive = llhttp_should_keep_alive(parser);
	if (parser->http_major == 1 && parser->http_minor == 1)
		reply->status = parser->status_code;
	/* Pause llhttp at the end of the head. */
	return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
	.on_headers_complete = on_head_complete,
};

void reply_init(struct reply *reply)
{
	*reply = (struct reply){ .size = 0 };
	llhttp_init(&reply->parser, HTTP_RESPONSE, &settings);
	reply->parser.data = reply;
}

size_t reply_parse(struct reply *reply, const char *data, size_t n)
{
	llhttp_t *parser = &reply->parser;
	llhttp_errno_t error = llhttp_execute(parser, data, n);

	if (error && !reply->complete)
		reply->wrong = llhttp_get_error_reason(parser);
	if (error)
		n = (size_t)(parser->error_pos - data);
	reply->size += n;
	return n;
}
