import { join } from 'node:path';

/** Folder of the migrations, the built dashboard, and the worked example: the repository, or `lib/` of the package. */
export const resourceFolder = join(import.meta.dirname, '..', '..', '..');
