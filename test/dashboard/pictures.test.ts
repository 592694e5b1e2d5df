import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { root } from '../files.ts';
import { readNavigationLabels } from '../support/browser/navigation-labels.ts';
import { openPage, useDashboard } from '../support/browser/use-dashboard.ts';

const folder = join(root, 'docs', 'images');
type Picture = { path: string; navigation: string };
const pictures = JSON.parse(readFileSync(join(folder, 'pictures.json'), 'utf8')) as Record<string, Picture>;

describe('the pictures of the dashboard in the documentation', () => {
  const dashboard = useDashboard();

  it('[ship 8] show the navigation that the dashboard has today', async (t) => {
    for (const [name, { path, navigation }] of Object.entries(pictures)) {
      const page = await openPage(t, dashboard, path);
      await page.getByRole('heading', { level: 1 }).waitFor();
      const labels = await readNavigationLabels(page);
      assert.equal(labels.join(', '), navigation, `${name} is out of date: npm run screenshots`);
    }
  });

  it('[ship 8] are those that pictures.json lists', () => {
    const files = globSync('*.{png,svg,jpg,webp,gif}', { cwd: folder }).toSorted();
    assert.deepEqual(files, Object.keys(pictures).toSorted());
  });
});
