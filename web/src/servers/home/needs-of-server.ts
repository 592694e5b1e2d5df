import { movedSecretIn } from '../../../../src/domain/warnings/moved-secret.ts';
import { changesText } from '../../../../src/operations/import-changes.ts';
import type { ServerDetail } from '../../answers.ts';
import type { Item } from '../../home/to-look-at.tsx';
import { textOf, toolsOf } from '../config.ts';
import { partOf } from '../editor/model/go-to-field.ts';

/** Secrets to set, changes of the description and warnings, each with the address where it is solved. */
export function needsOf({ server: { slug, imported }, config, warnings }: ServerDetail): Item[] {
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
