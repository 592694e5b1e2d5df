import { Switch, Tooltip } from '@mantine/core';
import { isDisabled } from '../../config.ts';
import { useField } from '../model/editor-context.ts';

/** Whether agents get a tool; one that is off stays in the configuration. */
export function ToolSwitch({ index, name }: { index: number; name: string }) {
  const tool = useField(['tools', index]);
  const field = useField(['tools', index, 'disabled']);
  const isOn = !isDisabled(tool.value);
  return (
    <Tooltip label={isOn ? 'Agents get this tool' : 'Kept here, hidden from agents'}>
      <Switch
        id={field.id}
        aria-label={`Agents get ${name}`}
        checked={isOn}
        onChange={({ currentTarget: { checked } }) => field.set(checked ? undefined : true)}
        className="th-tool-switch"
        size="sm"
        mx={4}
        flex="none"
      />
    </Tooltip>
  );
}
