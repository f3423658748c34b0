/*
 * spec.h - private to stream: what is asked for, as bytes. Tokens and named streams contain these bytes
 * (docs/formats/stream.md), so that a stream can be resumed by somebody who has nothing else.
 */
#ifndef WB_STREAM_SPEC_H
#define WB_STREAM_SPEC_H

#include "stream/stream.h"

/* Appends everything but snapshot, resume, name, join, facts and docids. Equal requests give equal bytes. */
int wb_spec_encode(const struct wb_stream_spec *spec, struct wb_buf *out);

/* Reads what wb_spec_encode() wrote into a new spec, which must be released in any case. WB_E_CORRUPT. */
int wb_spec_decode(struct wb_slice bytes, struct wb_stream_spec *spec_out);

/*
 * Whether what is asked for together with a token or a name contradicts what that stands for. WB_E_INVALID names the
 * first difference; `what` says with what it disagrees ("the token").
 */
int wb_spec_agree(const struct wb_stream_spec *asked, const struct wb_stream_spec *known, const char *what);

/* WB_E_INVALID if things that were asked for exclude each other. */
int wb_spec_check(const struct wb_stream_spec *spec);

/* Whether a page is in the part that is asked for. */
static inline bool wb_spec_has_part(const struct wb_stream_spec *spec, struct wb_pageid id)
{
    return spec->parts <= 1 || id.lo % spec->parts == spec->part - 1;
}

#endif
