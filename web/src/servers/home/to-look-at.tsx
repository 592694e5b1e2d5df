import { Alert, Anchor, List } from '@mantine/core';
import { IconAlertTriangle } from '@tabler/icons-react';
import { Link } from 'react-router';
import { movedSecretIn } from '../../../../src/domain/warnings/moved-secret.ts';
import { changesText } from '../../../../src/operations/import-changes.ts';
import type { ServerDetail } from '../../answers.ts';
import { Folded } from '../../ui/folded.tsx';
import { sentence } from '../../ui/states/problem-alert.tsx';
import { visible } from '../../ui/text/visible.ts';
import { textOf, toolsOf } from '../config.ts';
import { partOf } from '../editor/model/go-to-field.ts';
import { useShownServer } from '../server-page.tsx';

type Item = { label: string; text: string; to: string };

const mostShown = 5;

/** Secrets to set, changes of the description and warnings, each with a link to where it is solved. */
export function ToLookAt() {
  const items = itemsOf(useShownServer());
  if (items.length === 0) return null;
  return (
    <Alert color="yellow" icon={<IconAlertTriangle size={18} />} title="To look at">
      <Items items={items.slice(0, mostShown)} />
      {items.length > mostShown && (
        <Folded label={`${items.length - mostShown} more`}>
          <Items items={items.slice(mostShown)} />
        </Folded>
      )}
    </Alert>
  );
}

function Items({ items }: { items: readonly Item[] }) {
  return (
    <List size="sm" spacing={4} listStyleType="none">
      {items.map(({ label, text, to }) => (
        <List.Item key={`${label} ${text}`}>
          <Anchor component={Link} to={to} size="sm" underline="always" className="th-mono">
            {visible(label)}
          </Anchor>
          : {sentence(text)}
        </List.Item>
      ))}
    </List>
  );
}

function itemsOf({ server: { slug, imported }, config, warnings }: ServerDetail): Item[] {
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
  if (error !== undefined) items.unshift({ label: 'description', text: error, to: at('import') });
  else if (changed && counts)
    items.unshift({ label: 'description', text: `has changed: ${changesText(counts)}`, to: at('import') });
  // A secret that several tools use is one thing to do.
  return [...new Map(items.map((item) => [item.to, item])).values()];
}

/** The secret that a warning wants to be set under Secrets; one that is a field of the configuration is set there. */
function secretIn(message: string): string | undefined {
  const name = /^\{\{(\w+)\}\} has no value/.exec(message)?.[1] ?? movedSecretIn(message);
  return name !== undefined && /^\w+$/.test(name) ? name : undefined;
}
