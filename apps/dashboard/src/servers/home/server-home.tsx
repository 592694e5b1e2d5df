import { Stack } from '@mantine/core';
import { formatImportChanges } from '@toolhost/server/operations/import-changes';
import { parseMovedSecret } from '@toolhost/tool-config/moved-secret';
import type { ServerDetail } from '../../api-types.ts';
import { Activity } from '../../home/activity.tsx';
import { type Item, NeedsAttention } from '../../home/needs-attention.tsx';
import { asText, getTools } from '../config.ts';
import { getTab } from '../editor/model/go-to-field.ts';
import { useCurrentServer } from '../server-page.tsx';

export function ServerHome() {
  const detail = useCurrentServer();
  const { slug } = detail.server;
  return (
    <Stack gap="md">
      <NeedsAttention items={getPendingActions(detail)} />
      <Activity server={slug} newestSlug={slug} />
    </Stack>
  );
}

/** Returns secrets to set, API description changes, and warnings, each with a link to resolve it. */
function getPendingActions({ server: { slug, imported }, config, warnings }: ServerDetail): Item[] {
  const toTabUrl = (path: string) => `/servers/${slug}/${path}`;
  const names = getTools(config).map(({ name }) => asText(name));
  const items = warnings.map(({ path, message }): Item => {
    const secret = parseSecretName(message);
    if (secret !== undefined)
      return {
        label: secret,
        text: message.replace(/^\{\{\w+\}\} /, ''),
        to: toTabUrl(`settings/secrets?name=${secret}`),
        action: 'Set secret',
      };
    const to = toTabUrl(`${getTab(path)}#${encodeURIComponent(path)}`);
    const label = path.replace(/^tools\[(\d+)\]/, (_, index) => names[Number(index)] ?? '');
    return { label, text: message, to, action: 'Show' };
  });
  const { changed, error, counts } = imported ?? {};
  const text = error ?? (changed && counts && `has changed: ${formatImportChanges(counts)}`);
  if (text) items.unshift({ label: 'description', text, to: toTabUrl('settings/import'), action: 'Show' });
  // A secret that several tools use is listed once.
  return [...new Map(items.map((item) => [item.to, item])).values()];
}

/** Returns the secret that a warning asks to set under Secrets. Secret fields of the configuration are not included. */
function parseSecretName(message: string): string | undefined {
  const name = /^\{\{(\w+)\}\} has no value/.exec(message)?.[1] ?? parseMovedSecret(message);
  return name !== undefined && /^\w+$/.test(name) ? name : undefined;
}
