// The page around a stored page. Without this script, its bar and links work as well.
'use strict';
