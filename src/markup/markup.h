/*
 * markup.h - the door of markup: the characters, tags and tokens of a document, whatever its bytes are.
 *
 *   bytes -> charset.h -> UTF-8 -> tokenizer.h   HTML: tags, text, comments
 *                                     htmltag.h  which element a tag is
 *                                     entity.h   "&eacute;"
 *                                     attrvalue.h  what the values of attributes say
 *                               -> xml.h         XML: tags and text
 *                               -> css.h         style sheets: the URLs in them
 *                               -> script.h      scripts: the strings in them
 *   bytes -> tagwalk.h                           all tags of HTML where they are, to copy it with changes
 *
 * Every reader makes one pass over bytes that it borrows, and any bytes are a document. What tags and text mean is
 * none of its business: extract knows that. Why it works this way: docs/design/0006-pages.md.
 */
#ifndef WB_MARKUP_MARKUP_H
#define WB_MARKUP_MARKUP_H

#include "markup/attrvalue.h"
#include "markup/charset.h"
#include "markup/css.h"
#include "markup/entity.h"
#include "markup/htmltag.h"
#include "markup/scan.h"
#include "markup/script.h"
#include "markup/tagwalk.h"
#include "markup/tokenizer.h"
#include "markup/xml.h"

#endif
