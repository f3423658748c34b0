/* secret_args.h - passwords of command lines. */
#ifndef WB_CLI_SECRET_ARGS_H
#define WB_CLI_SECRET_ARGS_H

/*
 * Hides the passwords in URLs of databases from those who list the processes of this machine (ps): argv then points to
 * copies, and the words that the system shows have 'x' in their place. WB_E_NOMEM. Until this is called they are
 * visible.
 */
int wb_secret_args_hide(int argc, char **argv);

#endif
