import { Badge, Group, Switch, UnstyledButton } from '@mantine/core';
import { IconAlertTriangle, IconGripVertical } from '@tabler/icons-react';
import { type DragEvent, useState } from 'react';
import { visible } from '../../../ui/text/visible.ts';
import { isDisabled, isObject, textOf } from '../../config.ts';
import { fieldId, useEditor, useValue } from '../model/editor-context.ts';
import { shownName } from './open-tool.tsx';

/** How many problems and warnings a tool has. */
export type Found = { problems: number; warnings: number };

type Props = {
  index: number;
  /** Its place among the tools that are shown. */
  row: number;
  isOpen: boolean;
  found: Found | undefined;
  onToggle: () => void;
  onDrag: () => void;
  onDrop: () => void;
};

/** A tool in the table. Its name opens it. */
export function ToolRow({ index, row, isOpen, found, onToggle, onDrag, onDrop }: Props) {
  const { set, isReadOnly } = useEditor();
  const value = useValue(['tools', index]);
  const tool = isObject(value) ? value : {};
  const [isOver, setOver] = useState(false);
  const name = shownName(tool.name, index);
  const isOn = !isDisabled(tool);
  const allow = (event: DragEvent, over: boolean) => {
    event.preventDefault();
    setOver(over);
  };
  return (
    <tr
      className="th-tool"
      aria-rowindex={row + 2}
      data-over={isOver || undefined}
      data-open={isOpen || undefined}
      data-off={!isOn || undefined}
      onDragOver={(event) => allow(event, true)}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        allow(event, false);
        onDrop();
      }}
    >
      <td>
        <Group gap={4} wrap="nowrap">
          {!isReadOnly && (
            <span draggable onDragStart={onDrag} className="th-grip" aria-hidden>
              <IconGripVertical size={15} />
            </span>
          )}
          <UnstyledButton onClick={onToggle} aria-expanded={isOpen} className="th-tool-name th-mono" title={name}>
            {name}
          </UnstyledButton>
          {!isOn && (
            <Badge variant="default" c="dimmed" flex="none">
              Disabled
            </Badge>
          )}
        </Group>
      </td>
      <td>
        <Badge color={isOn ? methodColor(textOf(tool.method)) : 'gray'} className="th-mono" miw={62}>
          {textOf(tool.method) || '–'}
        </Badge>
      </td>
      <td data-wide className="th-mono" title={visible(textOf(tool.url))}>
        {visible(textOf(tool.url).replace(/^\w+:\/\/[^/]*/, ''))}
      </td>
      <td>
        <Mark found={found} />
      </td>
      <td>
        <Switch
          id={fieldId(`tools[${index}].disabled`)}
          aria-label={`Agents get ${name}`}
          title={isOn ? 'Agents get this tool' : 'Kept here, hidden from agents'}
          checked={isOn}
          onChange={({ currentTarget: { checked } }) => set(['tools', index, 'disabled'], checked ? undefined : true)}
          disabled={isReadOnly}
          size="sm"
        />
      </td>
    </tr>
  );
}

function methodColor(method: string): string {
  if (method === 'GET') return 'accent';
  if (method === 'DELETE') return 'red';
  return method === '' ? 'gray' : 'green';
}

function Mark({ found }: { found: Found | undefined }) {
  const { problems, warnings } = found ?? { problems: 0, warnings: 0 };
  if (problems + warnings === 0) return null;
  const summary = problems > 0 ? `${problems} to solve` : `${warnings} to look at`;
  return (
    <Group gap={4} wrap="nowrap" title={summary} c={problems > 0 ? 'var(--th-bad)' : 'var(--th-warn)'}>
      <IconAlertTriangle size={15} aria-label={summary} />
      <span aria-hidden>{problems || warnings}</span>
    </Group>
  );
}
