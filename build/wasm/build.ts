/**
 * Compiles `json.ts` to `packages/json/src/json-wasm.ts` (`npm run wasm`). The compiler is downloaded on demand, because
 * it is large and rarely needed. A test fails if this step was forgotten.
 */
import { execFileSync } from 'node:child_process';
import { hash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const compiler = 'assemblyscript@0.28.20';
const source = join(import.meta.dirname, 'json.ts');
const target = join(import.meta.dirname, '..', '..', 'packages', 'json', 'src', 'json-wasm.ts');

const folder = mkdtempSync(join(tmpdir(), 'toolhost-wasm-'));
const binary = join(folder, 'json.wasm');
const options = '-O3 --runtime stub --noAssert --enable simd --initialMemory 5 --maximumMemory 5'.split(' ');
execFileSync('npx', ['--yes', '--package', compiler, 'asc', source, '--outFile', binary, ...options], {
  stdio: 'inherit',
});
const base64 = readFileSync(binary, 'base64');
rmSync(folder, { recursive: true });
const lines = base64.match(/.{1,110}/g) ?? [];
writeFileSync(
  target,
  `/** Compiled from build/wasm/json.ts by npm run wasm; do not edit. */

export const sourceHash = '${hash('sha256', readFileSync(source), 'hex')}';

export const base64 =
  ${lines.map((line) => `'${line}'`).join(' +\n  ')};
`,
);
