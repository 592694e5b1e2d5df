import { Stack } from '@mantine/core';
import { movedSecretIn } from '../../../../src/domain/warnings/moved-secret.ts';
import { changesText } from '../../../../src/operations/import-changes.ts';
import type { ServerDetail } from '../../answers.ts';
import { Activity } from '../../home/activity.tsx';
import { type Item, ToLookAt } from '../../home/to-look-at.tsx';
import { textOf, toolsOf } from '../config.ts';
import { partOf } from '../editor/model/go-to-field.ts';
import { useShownServer } from '../server-page.tsx';
import { Duplicate } from './duplicate.tsx';

/** Home page of a server: pending actions and call activity. */
export function ServerHome() {
  const detail = useShownServer();
  const { slug } = detail.server;
  return (
    <Stack gap="md">
      <ToLookAt items={needsOf(detail)} />
      <Activity server={slug} newest={slug}>
        <Duplicate />
      </Activity>
    </Stack>
  );
}

/** Returns secrets to set, API description changes, and warnings, each with a link to resolve it. */
function needsOf({ server: { slug, imported }, config, warnings }: ServerDetail): Item[] {
  const at = (path: string) => `/servers/${slug}/${path}`;
  const names = toolsOf(config).map(({ name }) => textOf(name));
  const items = warnings.map(({ path, message }): Item => {
    const secret = secretIn(message);
    if (secret !== undefined)
      return { label: secret, text: message.replace(/^\{\{\w+\}\} /, ''), to: at(`secrets?name=${secret}`) };
    const to = at(`${partOf(path)}#${encodeURIComponent(path)}`);
    return { label: path.replace(/^tools\[(\d+)\]/, (_, index) => names[Number(index)] ?? ''), text: message, to };
  });
  const { changed, error, counts } = imported ?? {};
  const text = error ?? (changed && counts && `has changed: ${changesText(counts)}`);
  if (text) items.unshift({ label: 'description', text, to: at('import') });
  // A secret that several tools use is listed once.
  return [...new Map(items.map((item) => [item.to, item])).values()];
}

/** Returns the secret that a warning asks to set under Secrets. Secret fields of the configuration are not included. */
function secretIn(message: string): string | undefined {
  const name = /^\{\{(\w+)\}\} has no value/.exec(message)?.[1] ?? movedSecretIn(message);
  return name !== undefined && /^\w+$/.test(name) ? name : undefined;
}
