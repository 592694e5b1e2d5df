import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { gzipSync } from 'node:zlib';

const folder = join(import.meta.dirname, '..', '..', 'dist', 'web');

/** JavaScript that the first page may load, compressed, and its files. */
const landing = { bytes: 235_000, files: 5 };
const firstPage = { bytes: 250_000, files: 20 };

type Chunk = { file: string; imports?: string[]; dynamicImports?: string[]; css?: string[] };

describe('the files of the built dashboard', () => {
  const manifest = () =>
    JSON.parse(readFileSync(join(folder, '.vite', 'manifest.json'), 'utf8')) as Record<string, Chunk>;

  /** The files that a browser loads for these modules. */
  function filesOf(...entries: string[]): string[] {
    const chunks = manifest();
    const found = new Set<string>();
    const visit = (name: string) => {
      const chunk = chunks[name] ?? assert.fail(`there is no ${name}; built: ${Object.keys(chunks).join(', ')}`);
      if (found.has(chunk.file)) return;
      found.add(chunk.file);
      for (const inner of chunk.imports ?? []) visit(inner);
    };
    for (const entry of entries) visit(entry);
    return [...found];
  }

  const compressed = (file: string) => gzipSync(readFileSync(join(folder, file))).length;

  it('are at most 250 KB of compressed JavaScript in 20 files for the first page, and 235 KB in 5 for the landing page', () => {
    for (const [files, most] of [
      [filesOf('index.html'), landing],
      [filesOf('index.html', 'src/home/home-page.tsx'), firstPage],
    ] as const) {
      const sizes = files.map((file) => [file, compressed(file)] as const);
      const sum = sizes.reduce((total, [, size]) => total + size, 0);
      assert.ok(sum > 50_000, 'it is measured');
      assert.ok(sum <= most.bytes && files.length <= most.files, `${sum} bytes: ${JSON.stringify(sizes)}`);
    }
  });

  it('bring the charts and the editor only where they are needed', () => {
    const first = filesOf('index.html', 'src/home/home-page.tsx').map((file) =>
      readFileSync(join(folder, file), 'utf8'),
    );
    for (const [module, words] of [
      ['src/calls/call-charts.tsx', 'Half of the calls (p50)'],
      ['src/servers/tabs/configuration-tab.tsx', 'Before it can be stored'],
      ['src/servers/editor/json/json-view.tsx', 'cm-lineWrapping'],
    ] as const) {
      const own = filesOf(module).map((file) => readFileSync(join(folder, file), 'utf8'));
      assert.ok(
        own.some((text) => text.includes(words)),
        module,
      );
      assert.ok(!first.some((text) => text.includes(words)), module);
    }
  });

  it('are one page without inline script or style, and nothing of another site', () => {
    const html = readFileSync(join(folder, 'index.html'), 'utf8');
    assert.doesNotMatch(html, /<script(?![^>]*\bsrc="\.\/)|<style|\sstyle=|\son\w+=/);
    assert.doesNotMatch(html, /(?:src|href)="(?!\.\/)/);
  });
});
