import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { readCorpus } from './corpus.ts';
import { createReport, reportsFile } from './corpus-reports.ts';

/** Writes the import reports of the corpus, to be reviewed in the diff. */
const files = await readCorpus();
const reports = Object.fromEntries(files.map((file) => [file.name, createReport(file)]));
writeFileSync(reportsFile, `${JSON.stringify(reports, undefined, 2)}\n`);
execFileSync('npx', ['biome', 'format', '--write', reportsFile], { stdio: 'ignore' });
