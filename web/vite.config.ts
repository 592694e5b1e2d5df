import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import react from '@vitejs/plugin-react';
import { defineConfig, type Plugin } from 'vite';
import { parse } from 'yaml';
import { type Repository, repositoryUrl } from '../package/repository.ts';

/** Makes a module of a YAML file: the examples of the gallery. */
const yamlFiles: Plugin = {
  name: 'yaml-files',
  transform(code, id) {
    if (!id.endsWith('.yaml')) return undefined;
    return { code: `export default ${JSON.stringify(parse(code))}`, map: null };
  },
};

/** The site as for `npm run site`; else the repository of the package, which a release writes into it. */
function documentation(): { site: string | undefined; repository: string | undefined } {
  const text = readFileSync(join(import.meta.dirname, '..', 'package.json'), 'utf8');
  const { repository } = JSON.parse(text) as { repository?: Repository };
  return { site: process.env.SITE_URL, repository: repositoryUrl(repository) };
}

// biome-ignore lint/style/noDefaultExport: Vite asks for a default export
export default defineConfig({
  root: import.meta.dirname,
  // The service writes the path of its base URL before the addresses in the page; scripts find each other beside them.
  base: './',
  define: { __DOCUMENTATION__: documentation() },
  plugins: [react(), yamlFiles],
  build: {
    outDir: '../dist/web',
    emptyOutDir: true,
    // Which file needs which, for the test of how much the first page loads.
    manifest: true,
    // For the package: what of others is in the dashboard.
    license: { fileName: '.vite/licenses.json' },
    assetsInlineLimit: 0,
    target: 'es2023',
    // Those that know light-dark().
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
    rolldownOptions: {
      output: {
        // Few requests: what the first page needs is one file, and what most other pages share is another.
        codeSplitting: {
          groups: [
            { name: 'first', tags: ['$initial'], priority: 2 },
            { name: 'common', minShareCount: 6, priority: 1 },
          ],
        },
      },
    },
    reportCompressedSize: false,
    // test/dashboard/bundle.test.ts limits what each page loads; a warning would only worry people at their first start.
    chunkSizeWarningLimit: 2000,
  },
});
