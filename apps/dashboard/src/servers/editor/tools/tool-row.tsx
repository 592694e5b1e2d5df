import { Badge, Checkbox, Group, Switch, Text, UnstyledButton } from '@mantine/core';
import { IconAlertTriangle, IconGripVertical } from '@tabler/icons-react';
import { type DragEvent, useState } from 'react';
import type { FieldProblem, ToolFigures } from '../../../api-types.ts';
import { Count, ignoreLinks } from '../../../ui/rows.tsx';
import { toVisible } from '../../../ui/text/visible.ts';
import { asList, asText, isDisabled, isObject } from '../../config.ts';
import { getFieldId, useEditor, useEditorState, useValue } from '../model/editor-context.ts';
import { goToField } from '../model/go-to-field.ts';
import { getToolName } from './open-tool.tsx';

type Props = {
  index: number;
  /** Position among the shown tools. */
  row: number;
  isOpen: boolean;
  /** Figures of the stored tools, by name. */
  figures: ReadonlyMap<string, ToolFigures>;
  isSelected: boolean;
  onSelect: (isSelected: boolean) => void;
  /** Undefined if the rows cannot be dragged, because they are sorted by a figure. */
  onDrag: (() => void) | undefined;
  onDrop: () => void;
};

/** Row of a tool, which a click opens. */
export function ToolRow({ index, row, isOpen, figures, isSelected, onSelect, onDrag, onDrop }: Props) {
  const { set, isReadOnly } = useEditor();
  const value = useValue(['tools', index]);
  const tool = isObject(value) ? value : {};
  const isStored = useEditorState(({ initial }) => asList(initial.tools).includes(value));
  const [isDragOver, setDragOver] = useState(false);
  const name = getToolName(tool.name, index);
  const isEnabled = !isDisabled(tool);
  const { tokens, calls, errors } = figures.get(asText(tool.name)) ?? {};
  const handleDrag = (event: DragEvent, isOver: boolean) => {
    event.preventDefault();
    setDragOver(isOver);
  };
  return (
    <tr
      className="th-tool"
      aria-rowindex={row + 2}
      data-over={isDragOver || undefined}
      data-open={isOpen || isSelected || undefined}
      data-off={!isEnabled || undefined}
      onClick={ignoreLinks(() => goToField(`tools[${index}]`))}
      onDragOver={(event) => handleDrag(event, true)}
      onDragLeave={() => setDragOver(false)}
      onDrop={(event) => {
        handleDrag(event, false);
        onDrop();
      }}
    >
      {!isReadOnly && (
        <td>
          <Checkbox
            size="xs"
            aria-label={`Select ${name}`}
            checked={isSelected}
            onChange={({ currentTarget: { checked } }) => onSelect(checked)}
          />
        </td>
      )}
      <td>
        <Group gap={4} wrap="nowrap">
          {!isReadOnly && onDrag && (
            <span draggable onDragStart={onDrag} className="th-grip" aria-hidden>
              <IconGripVertical size={15} />
            </span>
          )}
          <UnstyledButton
            onClick={() => goToField(`tools[${index}]`)}
            aria-haspopup="dialog"
            className="th-tool-name th-mono"
            title={name}
          >
            {name}
          </UnstyledButton>
          {!isEnabled && (
            <Badge variant="default" c="dimmed" flex="none">
              Disabled
            </Badge>
          )}
        </Group>
        <Text className="th-tool-path th-mono" c="dimmed" title={toVisible(asText(tool.url))}>
          {asText(tool.method)} {toVisible(asText(tool.url).replace(/^\w+:\/\/[^/]*/, ''))}
        </Text>
      </td>
      <td data-figure="tokens">{isStored && tokens?.toLocaleString('en')}</td>
      <td data-figure="calls">{calls !== undefined && <Count value={calls} />}</td>
      <td data-figure="errors">{calls !== undefined && <Count value={errors} />}</td>
      <td>
        <ProblemCount path={`tools[${index}]`} />
      </td>
      <td>
        <Switch
          id={getFieldId(`tools[${index}].disabled`)}
          aria-label={`Enable ${name}`}
          title={isEnabled ? 'Available to agents' : 'Hidden from agents'}
          checked={isEnabled}
          onChange={() => set(['tools', index, 'disabled'], isEnabled ? true : undefined)}
          disabled={isReadOnly}
          size="sm"
        />
      </td>
    </tr>
  );
}

function ProblemCount({ path }: { path: string }) {
  const isWithin = (problem: FieldProblem) => problem.path.startsWith(path);
  const [problems, warnings] = useEditorState((state) => [
    state.isRevealed || state.touched.has(path) ? state.problems.filter(isWithin).length : 0,
    state.warnings.filter(isWithin).length,
  ]) as [number, number];
  if (problems + warnings === 0) return null;
  const summary = problems > 0 ? `${problems} to fix` : `${warnings} to review`;
  return (
    <Group gap={4} wrap="nowrap" title={summary} c={problems > 0 ? 'var(--th-bad)' : 'var(--th-warn)'}>
      <IconAlertTriangle size={15} aria-label={summary} />
      <span aria-hidden>{problems || warnings}</span>
    </Group>
  );
}
