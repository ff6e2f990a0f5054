-- How often what may not be forgotten has changed: `store/anchor.py` holds the number against a file outside the store.
CREATE TABLE changes (n INTEGER NOT NULL);
INSERT INTO changes VALUES (0);

CREATE TRIGGER flow_labels_insert AFTER INSERT ON flow_labels BEGIN UPDATE changes SET n = n + 1; END;
CREATE TRIGGER flow_labels_update AFTER UPDATE ON flow_labels BEGIN UPDATE changes SET n = n + 1; END;
CREATE TRIGGER flow_labels_delete AFTER DELETE ON flow_labels BEGIN UPDATE changes SET n = n + 1; END;

CREATE TRIGGER approvals_insert AFTER INSERT ON approvals BEGIN UPDATE changes SET n = n + 1; END;
CREATE TRIGGER approvals_update AFTER UPDATE ON approvals BEGIN UPDATE changes SET n = n + 1; END;
CREATE TRIGGER approvals_delete AFTER DELETE ON approvals BEGIN UPDATE changes SET n = n + 1; END;

CREATE TRIGGER endorsements_insert AFTER INSERT ON endorsements BEGIN UPDATE changes SET n = n + 1; END;
CREATE TRIGGER endorsements_update AFTER UPDATE ON endorsements BEGIN UPDATE changes SET n = n + 1; END;
CREATE TRIGGER endorsements_delete AFTER DELETE ON endorsements BEGIN UPDATE changes SET n = n + 1; END;

CREATE TRIGGER pins_insert AFTER INSERT ON pins BEGIN UPDATE changes SET n = n + 1; END;
CREATE TRIGGER pins_update AFTER UPDATE ON pins BEGIN UPDATE changes SET n = n + 1; END;
CREATE TRIGGER pins_delete AFTER DELETE ON pins BEGIN UPDATE changes SET n = n + 1; END;

CREATE TRIGGER instructions_insert AFTER INSERT ON instructions BEGIN UPDATE changes SET n = n + 1; END;
CREATE TRIGGER instructions_update AFTER UPDATE ON instructions BEGIN UPDATE changes SET n = n + 1; END;
CREATE TRIGGER instructions_delete AFTER DELETE ON instructions BEGIN UPDATE changes SET n = n + 1; END;

CREATE TRIGGER servers_insert AFTER INSERT ON servers BEGIN UPDATE changes SET n = n + 1; END;
CREATE TRIGGER servers_update AFTER UPDATE ON servers BEGIN UPDATE changes SET n = n + 1; END;
CREATE TRIGGER servers_delete AFTER DELETE ON servers BEGIN UPDATE changes SET n = n + 1; END;

CREATE TRIGGER operator_labels_insert AFTER INSERT ON operator_labels BEGIN UPDATE changes SET n = n + 1; END;
CREATE TRIGGER operator_labels_update AFTER UPDATE ON operator_labels BEGIN UPDATE changes SET n = n + 1; END;
CREATE TRIGGER operator_labels_delete AFTER DELETE ON operator_labels BEGIN UPDATE changes SET n = n + 1; END;

CREATE TRIGGER noise_insert AFTER INSERT ON noise BEGIN UPDATE changes SET n = n + 1; END;
CREATE TRIGGER noise_update AFTER UPDATE ON noise BEGIN UPDATE changes SET n = n + 1; END;
CREATE TRIGGER noise_delete AFTER DELETE ON noise BEGIN UPDATE changes SET n = n + 1; END;

CREATE TRIGGER approved_configs_insert AFTER INSERT ON approved_configs BEGIN UPDATE changes SET n = n + 1; END;
CREATE TRIGGER approved_configs_update AFTER UPDATE ON approved_configs BEGIN UPDATE changes SET n = n + 1; END;
CREATE TRIGGER approved_configs_delete AFTER DELETE ON approved_configs BEGIN UPDATE changes SET n = n + 1; END;

CREATE TRIGGER policies_insert AFTER INSERT ON policies BEGIN UPDATE changes SET n = n + 1; END;
CREATE TRIGGER policies_update AFTER UPDATE ON policies BEGIN UPDATE changes SET n = n + 1; END;
CREATE TRIGGER policies_delete AFTER DELETE ON policies BEGIN UPDATE changes SET n = n + 1; END;

CREATE TRIGGER marks_insert AFTER INSERT ON marks BEGIN UPDATE changes SET n = n + 1; END;
CREATE TRIGGER marks_update AFTER UPDATE ON marks BEGIN UPDATE changes SET n = n + 1; END;
CREATE TRIGGER marks_delete AFTER DELETE ON marks BEGIN UPDATE changes SET n = n + 1; END;
