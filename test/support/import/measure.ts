import { readFileSync } from 'node:fs';
import { importDocument } from '../../../src/import/import-document.ts';

/** Run as a program: plans the document of a file, and prints processor seconds and the most memory that it took. */
const text = readFileSync(process.argv[2] as string, 'utf8');
const before = process.cpuUsage();
const { chosen } = importDocument(text, { include: ['*'], deprecated: true }, 'all');
const { user, system } = process.cpuUsage(before);
const megabytes = process.resourceUsage().maxRSS / 1024;
process.stdout.write(JSON.stringify({ tools: chosen.tools, seconds: (user + system) / 1e6, megabytes }));
