import { Checkbox, type CheckboxGroupProps } from '@mantine/core';
import { notificationEventNames, notificationEvents } from '@toolhost/server/notification-events';
import { TwoColumns } from '../ui/two-columns.tsx';

export function EventChoice(group: Omit<CheckboxGroupProps, 'children'>) {
  return (
    <Checkbox.Group {...group} errorProps={{ role: 'alert' }}>
      <TwoColumns>
        {notificationEventNames.map((name) => {
          const { label, text } = notificationEvents[name];
          return <Checkbox key={name} value={name} label={label} description={text} />;
        })}
      </TwoColumns>
    </Checkbox.Group>
  );
}
