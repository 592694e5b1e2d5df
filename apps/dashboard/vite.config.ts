import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import react from '@vitejs/plugin-react';
import { defineConfig, type Plugin } from 'vite';
import { parse } from 'yaml';
import { type Repository, repositoryUrl } from '../../build/package/repository.ts';

/** Loads YAML files, such as the gallery examples, as modules. */
const yamlFiles: Plugin = {
  name: 'yaml-files',
  transform(code, id) {
    if (!id.endsWith('.yaml')) return undefined;
    return { code: `export default ${JSON.stringify(parse(code))}`, map: null };
  },
};

/** Preloads the font, so that the first page is drawn with it. */
const preloadFont: Plugin = {
  name: 'preload-font',
  transformIndexHtml: {
    order: 'post',
    handler: (_, { bundle = {} }) =>
      Object.keys(bundle)
        .filter((name) => name.endsWith('.woff2'))
        .map((name) => ({
          tag: 'link',
          attrs: { rel: 'preload', as: 'font', type: 'font/woff2', href: `./${name}`, crossorigin: true },
          injectTo: 'head' as const,
        })),
  },
};

/**
 * Returns the site from `SITE_URL`, as for `npm run site`, and the repository, which a release writes into
 * package.json.
 */
function documentation(): { site: string | undefined; repository: string | undefined } {
  const packageJson = readFileSync(join(import.meta.dirname, '..', '..', 'package.json'), 'utf8');
  const { repository } = JSON.parse(packageJson) as { repository?: Repository };
  return { site: process.env.SITE_URL, repository: repositoryUrl(repository) };
}

// biome-ignore lint/style/noDefaultExport: Vite requires a default export
export default defineConfig({
  root: import.meta.dirname,
  // The service prefixes URLs in the page with the path of its base URL. Scripts reference each other relatively.
  base: './',
  define: { __DOCUMENTATION__: documentation() },
  plugins: [react(), yamlFiles, preloadFont],
  build: {
    outDir: '../../dist/web',
    emptyOutDir: true,
    // Dependency manifest for the test that limits the size of the first page.
    manifest: true,
    // Third-party licenses for the package.
    license: { fileName: '.vite/licenses.json' },
    assetsInlineLimit: 0,
    target: 'es2023',
    // Browsers that support light-dark().
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
    rolldownOptions: {
      output: {
        // Keeps requests few: one file for the first page, another for code that most other pages share.
        codeSplitting: {
          groups: [
            { name: 'first', tags: ['$initial'], priority: 2 },
            { name: 'common', minShareCount: 6, priority: 1 },
          ],
        },
      },
    },
    reportCompressedSize: false,
    // test/dashboard/bundle.test.ts limits the size of each page. A warning would only confuse people at first start.
    chunkSizeWarningLimit: 2000,
  },
});
