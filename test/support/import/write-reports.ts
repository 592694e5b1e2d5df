import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { readCorpus } from './corpus.ts';
import { reportOf, reportsFile } from './reports.ts';

/** Writes the import reports of the corpus, to be reviewed in the diff. */
const files = await readCorpus();
const reports = Object.fromEntries(files.map((file) => [file.name, reportOf(file)]));
writeFileSync(reportsFile, `${JSON.stringify(reports, undefined, 2)}\n`);
execFileSync('npx', ['biome', 'format', '--write', reportsFile], { stdio: 'ignore' });
