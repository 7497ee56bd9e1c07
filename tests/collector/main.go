// An OpenTelemetry Collector with only the parts that the test needs: it receives OTLP over HTTP and
// writes what it understood to stderr.
package main

import (
	"log"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/loggingexporter"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
)

func main() {
	receivers, err := receiver.MakeFactoryMap(otlpreceiver.NewFactory())
	if err != nil {
		log.Fatal(err)
	}
	exporters, err := exporter.MakeFactoryMap(loggingexporter.NewFactory())
	if err != nil {
		log.Fatal(err)
	}
	command := otelcol.NewCommand(otelcol.CollectorSettings{
		BuildInfo: component.BuildInfo{Command: "collector", Description: "for tests", Version: "1"},
		Factories: otelcol.Factories{Receivers: receivers, Exporters: exporters},
	})
	if err := command.Execute(); err != nil {
		log.Fatal(err)
	}
}
