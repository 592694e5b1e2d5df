import { Button, Code, Group, Text } from '@mantine/core';
import { escapeName } from '@toolhost/errors/dot-path';
import { useState } from 'react';
import { useNavigate } from 'react-router';
import type { JsonObject } from '../../../api-types.ts';
import { useCanEdit } from '../../../frame/session.ts';
import { Collapsible } from '../../../ui/collapsible.tsx';
import { toVisible } from '../../../ui/text/visible.ts';
import { asText } from '../../config.ts';

type Props = { response: object; tool: JsonObject; slug: string };

/** Picker for the part of the response that agents get, as `response_transform`. */
export function PickTransform({ response, tool, slug }: Props) {
  const canEdit = useCanEdit();
  const navigate = useNavigate();
  const [picked, setPicked] = useState<string>();
  const before = asText(tool.response_transform) || '.';
  const transform = picked === undefined || before === '.' ? picked : `${before}.${picked}`;
  const applyTransform = () =>
    navigate(`/servers/${slug}/tools`, {
      state: { change: { tool: asText(tool.name), fields: { response_transform: transform } } },
    });
  if (!canEdit) return null;
  return (
    <Collapsible label="Pick part of the response">
      <Text c="dimmed">Click the value that agents should get instead of the whole response.</Text>
      <div className="th-code">
        <JsonTree value={response} path="" onPick={setPicked} />
      </div>
      {transform !== undefined && (
        <Group gap="sm">
          <Text>
            response_transform: <Code>{toVisible(transform)}</Code>
          </Text>
          <Button onClick={applyTransform}>Use in configuration</Button>
        </Group>
      )}
    </Collapsible>
  );
}

type JsonTreeProps = { value: unknown; path: string; onPick: (path: string) => void };

const maxEntries = 50;

/** JSON in which every value can be clicked. Shows a limited number of entries per level. */
function JsonTree({ value, path, onPick }: JsonTreeProps) {
  const isLeaf = typeof value !== 'object' || value === null;
  const entries = isLeaf ? [] : Object.entries(value);
  const outline = Array.isArray(value) ? `[ ${entries.length} ]` : '{ }';
  const text = isLeaf ? toVisible(JSON.stringify(value) ?? '') : outline;
  return (
    <>
      {path === '' ? (
        text
      ) : (
        <button type="button" className="th-pick" onClick={() => onPick(path)} aria-label={`Pick ${toVisible(path)}`}>
          {text}
        </button>
      )}
      {entries.slice(0, maxEntries).map(([name, inner]) => (
        <div key={name} style={{ paddingLeft: '1.25rem' }}>
          <span style={{ color: 'var(--mantine-color-dimmed)' }}>{toVisible(name)}: </span>
          <JsonTree value={inner} path={path ? `${path}.${escapeName(name)}` : escapeName(name)} onPick={onPick} />
        </div>
      ))}
      {entries.length > maxEntries && <div>… and {entries.length - maxEntries} more</div>}
    </>
  );
}
