/* output.h - what goes to standard output. */
#ifndef WB_CLI_OUTPUT_H
#define WB_CLI_OUTPUT_H

/* Flushes standard output; WB_E_IO where it could not be written. */
int wb_output_flush(void);

#endif
