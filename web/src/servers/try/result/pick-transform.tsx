import { Button, Code, Group, Text } from '@mantine/core';
import { useState } from 'react';
import { useNavigate } from 'react-router';
import { nameText } from '../../../../../src/domain/json/dot-path.ts';
import type { JsonObject } from '../../../answers.ts';
import { useCanEdit } from '../../../frame/session.ts';
import { Folded } from '../../../ui/folded.tsx';
import { visible } from '../../../ui/text/visible.ts';
import { textOf } from '../../config.ts';

type Props = { answer: object; tool: JsonObject; slug: string };

/** Picker for part of the response. */
export function PickTransform({ answer, tool, slug }: Props) {
  const canEdit = useCanEdit();
  const navigate = useNavigate();
  const [picked, setPicked] = useState<string>();
  const before = textOf(tool.response_transform) || '.';
  const transform = picked === undefined ? undefined : before === '.' ? picked : `${before}.${picked}`;
  const use = () =>
    navigate(`/servers/${slug}/tools`, {
      state: { change: { tool: textOf(tool.name), fields: { response_transform: transform } } },
    });
  if (!canEdit) return null;
  return (
    <Folded label="Pick part of the response">
      <Text size="sm" c="dimmed">
        Click the value that agents should get instead of the whole response.
      </Text>
      <div className="th-code">
        <JsonTree value={answer} path="" onPick={setPicked} />
      </div>
      {transform !== undefined && (
        <Group gap="sm">
          <Text size="sm">
            response_transform: <Code>{visible(transform)}</Code>
          </Text>
          <Button size="xs" onClick={use}>
            Use in configuration
          </Button>
        </Group>
      )}
    </Folded>
  );
}

type JsonTreeProps = { value: unknown; path: string; onPick: (path: string) => void };

const mostShown = 50;

/** JSON in which every value can be clicked. Shows a limited number of entries per level. */
function JsonTree({ value, path, onPick }: JsonTreeProps) {
  const isLeaf = typeof value !== 'object' || value === null;
  const entries = isLeaf ? [] : Object.entries(value);
  const text = isLeaf ? visible(JSON.stringify(value) ?? '') : Array.isArray(value) ? `[ ${entries.length} ]` : '{ }';
  return (
    <>
      {path === '' ? (
        text
      ) : (
        <button type="button" className="th-pick" onClick={() => onPick(path)} aria-label={`Pick ${visible(path)}`}>
          {text}
        </button>
      )}
      {entries.slice(0, mostShown).map(([name, inner]) => (
        <div key={name} style={{ paddingLeft: '1.25rem' }}>
          <span style={{ color: 'var(--mantine-color-dimmed)' }}>{visible(name)}: </span>
          <JsonTree value={inner} path={path ? `${path}.${nameText(name)}` : nameText(name)} onPick={onPick} />
        </div>
      ))}
      {entries.length > mostShown && <div>… and {entries.length - mostShown} more</div>}
    </>
  );
}
