/* languagename.c - what people who speak a language call it. ICU knows. */
#include "words/words.h"

#include <string.h>
#include <unicode/uloc.h>
#include <unicode/ustring.h>

void wb_language_name(const char *code, char name_out[WB_LANGUAGE_NAME_MAX])
{
    UChar name[WB_LANGUAGE_NAME_MAX];
    UErrorCode status = U_ZERO_ERROR;
    int32_t length = 0, units = uloc_getDisplayLanguage(code, code, name, WB_LANGUAGE_NAME_MAX, &status);

    if (U_SUCCESS(status))
        u_strToUTF8(name_out, WB_LANGUAGE_NAME_MAX, &length, name, units, &status);
    /* A name that does not fit, or that ICU does not know. */
    if (U_FAILURE(status) || status == U_STRING_NOT_TERMINATED_WARNING || length == 0) {
        strncpy(name_out, code, WB_LANGUAGE_NAME_MAX - 1);
        name_out[WB_LANGUAGE_NAME_MAX - 1] = '\0';
    }
}
