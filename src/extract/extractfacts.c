/* extractfacts.c - facts as others see them: which values are numbers, and JSON. */
#include "base/check.h"
#include "base/json.h"
#include "extract/extract.h"

#include <math.h>
#include <stdlib.h>

enum { NUMBER_BYTES_MAX = 32 };

bool wb_extract_number(struct wb_slice value, double *number_out)
{
    char text[NUMBER_BYTES_MAX + 1], *end;

    if (value.len == 0 || value.len > NUMBER_BYTES_MAX)
        return false;
    for (size_t i = 0; i < value.len; i++) /* no "nan", no "0x10", no blanks */
        if (!memchr("0123456789+-.eE", value.ptr[i], 15))
            return false;
    memcpy(text, value.ptr, value.len);
    text[value.len] = '\0';
    size_t digit = text[0] == '-';
    if (text[digit] < '0' || text[digit] > '9' || text[value.len - 1] < '0' || text[value.len - 1] > '9')
        return false;
    if (text[digit] == '0' && text[digit + 1] >= '0' && text[digit + 1] <= '9') /* "007" is a name */
        return false;
    double number = strtod(text, &end);
    if (*end || !isfinite(number))
        return false;
    if (number_out)
        *number_out = number;
    return true;
}

void wb_extract_json_facts(struct wb_json *j, const struct wb_extract *extract)
{
    char name[65];

    if (extract->fact_count == 0)
        return;
    wb_json_key(j, "facts");
    wb_json_object(j);
    for (size_t i = 0; i < extract->fact_count; i++) {
        const struct wb_extract_fact *fact = &extract->facts[i];
        WB_CHECK(fact->name.len < sizeof name);
        memcpy(name, fact->name.ptr, fact->name.len);
        name[fact->name.len] = '\0';
        wb_json_key(j, name);
        double number;
        if (wb_extract_number(fact->value, &number))
            wb_json_double_exact(j, number);
        else
            wb_json_slice(j, fact->value);
    }
    wb_json_object_end(j);
}
